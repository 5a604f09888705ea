/** The file of the letters, which pages ask for before they have read a style sheet. */
export const TYPEFACE = 'geist-5.3.0.woff2'
