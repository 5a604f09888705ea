/** The version of the package; a test holds it equal to package.json, which the portable parts cannot read. */
export const VERSION = '0.3.0'
