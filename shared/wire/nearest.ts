/** The known name that a mistyped one is most likely to mean; undefined where none is near. */
export function nearest(given: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  // Of what was typed, one letter at least is right.
  let least = Math.min(Math.max(1, Math.floor(given.length / 3)), given.length - 1) + 1
  for (const name of known) {
    const remote = distance(given.toLowerCase(), name.toLowerCase(), least)
    if (remote >= least) continue
    best = name
    least = remote
  }
  return best
}

/** How many letters are put in, left out, exchanged, or swapped with the next one, between two names; at least `most` where it is more than that. */
function distance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) >= most) return most
  let [before, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, at) => at)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const exchanged = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const edits = Math.min(last[j]! + 1, row[j - 1]! + 1, exchanged)
      row.push(swapped ? Math.min(edits, before[j - 2]! + 1) : edits)
    }
    before = last
    last = row
  }
  return last[b.length]!
}
