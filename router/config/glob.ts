/**
 * Whether a text matches a pattern in which `*` stands for any run of characters, letters of either case alike.
 * Goes back to the last star only, so its time is the product of the lengths at worst and never more.
 */
export function globMatches(glob: string, text: string): boolean {
  const pattern = glob.toLowerCase()
  const value = text.toLowerCase()
  let p = 0
  let v = 0
  let star = -1
  let resume = 0
  while (v < value.length) {
    if (pattern[p] === '*') {
      star = p++
      resume = v
    } else if (p < pattern.length && pattern[p] === value[v]) {
      p++
      v++
    } else if (star !== -1) {
      p = star + 1
      v = ++resume
    } else return false
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}
