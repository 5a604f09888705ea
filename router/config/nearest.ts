/** The known word that a misspelt one most likely stands for; undefined when none is close. */
function nearest(word: string, known: Iterable<string>): string | undefined {
  const given = word.toLowerCase()
  let best: string | undefined
  let least = Math.min(Math.max(1, Math.floor(given.length / 3)), given.length - 1) + 1
  for (const candidate of known) {
    const remote = distance(given, candidate.toLowerCase())
    if (remote < least) {
      least = remote
      best = candidate
    }
  }
  return best
}

/** The end of a sentence about an unknown word. */
export function suggestion(word: string, known: Iterable<string>): string {
  const meant = nearest(word, known)
  return meant === undefined ? '' : ` - did you mean "${meant}"?`
}

/** Edits between two words: insert, delete, replace, or swap two neighbours. */
function distance(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, before[j - 2]! + 1)
      row.push(cost)
    }
    before = last
    last = row
  }
  return last[b.length]!
}
