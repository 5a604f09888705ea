/** A path and not an address: `//host` and `/\host` are addresses to a browser. */
export function isOwnPath(path: string): boolean {
  return /^\/(?![/\\])[\x21-\x7e]*$/.test(path) && !path.includes('\\') && !path.includes('#')
}
