import { readJson, rebuilt } from './read-json.ts'

/** Only a number of sixteen digits, or with an exponent, can be inexact. It also matches inside of some strings, which costs time and nothing else. */
const suspect = /(?:^|[[:,\s])-?(?:\d{16}|[\d.]+[eE])/

/** Whether a number is beyond 2^53 and the engine reads it as another one than is written. */
export function isInexact(written: string): boolean {
  const value = Number(written)
  return Math.abs(value) > Number.MAX_SAFE_INTEGER && decimal(written) !== decimal(String(value))
}

/** Reads JSON text as `readJson`, with what `instead` gives in the place of each inexact number. */
export function readExactly(text: string, instead: (written: string) => unknown): unknown {
  const value = readJson(text)
  if (!suspect.test(text)) return value
  return rebuilt(text, { number: (read, written) => (isInexact(written) ? instead(written) : read) })
}

export interface InexactNumber {
  /** A JSON pointer. */
  at: string
  written: string
}

/** The inexact numbers of a JSON text, in their order. */
export function inexactNumbers(text: string): InexactNumber[] {
  let any = false
  const root = readExactly(text, written => {
    any = true
    return new Written(written)
  })
  return any ? found(root) : []
}

class Written {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Without recursion: a text may be nested deeper than the stack. */
function found(root: unknown): InexactNumber[] {
  const numbers: InexactNumber[] = []
  const open = [{ at: '', value: root }]
  for (let one = open.pop(); one; one = open.pop()) {
    const { at, value } = one
    if (value instanceof Written) numbers.push({ at, written: value.text })
    else if (typeof value === 'object' && value !== null) {
      const members = Object.entries(value).map(([name, member]: [string, unknown]) => ({
        at: `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`,
        value: member,
      }))
      open.push(...members.toReversed())
    }
  }
  return numbers
}

/** The digits of a decimal number and the power of ten of the last of them: equal for equal numbers. */
function decimal(written: string): string {
  const [, sign = '', whole = '', part = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(written) ?? []
  // What is not finite.
  if (whole === '') return written
  const digits = whole + part
  let [first, last] = [0, digits.length]
  while (digits[first] === '0') first += 1
  while (last > first && digits[last - 1] === '0') last -= 1
  return `${sign}${digits.slice(first, last)}e${Number(power) - part.length + digits.length - last}`
}
