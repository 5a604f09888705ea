export interface DiffLine {
  kind: 'same' | 'added' | 'gone'
  text: string
}

/** The changes with so many lines around each; what lies between is left out. */
export function changesOf(lines: readonly DiffLine[], around = 3): (DiffLine | undefined)[] {
  const near = new Set<number>()
  lines.forEach(({ kind }, at) => {
    if (kind === 'same') return
    for (let i = at - around; i <= at + around; i++) near.add(i)
  })
  const shown: (DiffLine | undefined)[] = []
  lines.forEach((line, at) => {
    if (near.has(at)) shown.push(line)
    else if (shown.at(-1) !== undefined || at === 0) shown.push(undefined)
  })
  return shown
}

/** Beyond so many pairs of lines the middle is shown as one change, since the table below would be too large. */
const MOST_PAIRS = 4_000_000

/** The lines of two texts with the fewest changes between them, by their longest common subsequence. */
export function lineDiff(before: string, after: string): DiffLine[] {
  const a = before.split('\n')
  const b = after.split('\n')
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const same = (lines: string[]): DiffLine[] => lines.map(text => ({ kind: 'same', text }))
  return [
    ...same(a.slice(0, start)),
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...same(a.slice(a.length - end)),
  ]
}

function middle(a: readonly string[], b: readonly string[]): DiffLine[] {
  const gone = (text: string): DiffLine => ({ kind: 'gone', text })
  const added = (text: string): DiffLine => ({ kind: 'added', text })
  if (a.length * b.length > MOST_PAIRS) return [...a.map(gone), ...b.map(added)]
  const width = b.length + 1
  const common = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!)
    }
  }
  const lines: DiffLine[] = []
  let i = 0
  let j = 0
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i]! })
      i++
      j++
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) lines.push(gone(a[i++]!))
    else lines.push(added(b[j++]!))
  }
  return [...lines, ...a.slice(i).map(gone), ...b.slice(j).map(added)]
}
