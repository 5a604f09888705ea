/**
 * Nothing but this service's own files runs, and no text can become markup: the browser refuses it, whatever a module does. Frames are
 * refused because a page in one could be clicked without being seen.
 */
export const PANEL_POLICY =
  "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'"
