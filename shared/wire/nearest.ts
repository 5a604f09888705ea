/** The known name that a mistyped one is most likely to mean; undefined where none is near. */
export function nearest(given: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  // Of what was typed, one letter at least is right.
  let least = Math.min(Math.max(2, Math.floor(given.length / 3)), given.length - 1) + 1
  for (const name of known) {
    const remote = distance(given.toLowerCase(), name.toLowerCase(), least)
    if (remote >= least) continue
    best = name
    least = remote
  }
  return best
}

/** How many letters are put in, left out or exchanged between two names; at least `most` where it is more than that. */
function distance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) >= most) return most
  let before = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const exchanged = before[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(before[j]! + 1, row[j - 1]! + 1, exchanged))
    }
    before = row
  }
  return before[b.length]!
}
