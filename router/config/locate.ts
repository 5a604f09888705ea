import { type Mark, markToml } from './toml-marks.ts'

export type Path = readonly (string | number)[]

export interface Position {
  /** Counted from 1. */
  line: number
  /** UTF-16 units, counted from 1. */
  column: number
}

export type Locator = ReturnType<typeof tomlLocator>

/** Finds keys and values of an accepted TOML text by their path in the parsed document. */
export function tomlLocator(text: string) {
  const root = markToml(text)
  const starts = lineStarts(text)
  const find = (path: Path) => nearest(root, path)
  return {
    /** Where the last name of the path is written; for something that is missing, the table it is missing from. */
    key(path: Path): Position {
      const { mark, exact } = find(path)
      return positionAt(starts, exact ? mark.key : mark.value)
    },
    /** Where the value starts; for something that is missing, the table it is missing from. */
    value: (path: Path): Position => positionAt(starts, find(path).mark.value),
  }
}

function nearest(root: Mark, path: Path): { mark: Mark; exact: boolean } {
  let mark = root
  for (const step of path) {
    const next = typeof step === 'number' ? mark.items[step] : mark.members.get(step)
    if (next === undefined) return { mark, exact: false }
    mark = next
  }
  return { mark, exact: true }
}

function lineStarts(text: string): number[] {
  const starts = [0]
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', end + 1)) starts.push(end + 1)
  return starts
}

function positionAt(starts: readonly number[], offset: number): Position {
  let low = 0
  let high = starts.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (starts[middle]! <= offset) low = middle
    else high = middle - 1
  }
  return { line: low + 1, column: offset - starts[low]! + 1 }
}
