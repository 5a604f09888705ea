import type { Writable } from 'node:stream'

const CODES = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39] } as const

/** How a text is marked on a terminal; without colour each leaves it as it is. */
export type Style = Readonly<Record<keyof typeof CODES, (text: string) => string>>

export function isTty(stream: object): boolean {
  return 'isTTY' in stream && stream.isTTY === true
}

/** Colours for a person at a terminal: none in a pipe or a file, with NO_COLOR, or on a terminal that has none. */
export function styleOf(stream: Writable, env: Readonly<Record<string, string | undefined>>): Style {
  const forced = env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== '' && env.FORCE_COLOR !== '0'
  const refused = (env.NO_COLOR !== undefined && env.NO_COLOR !== '') || env.TERM === 'dumb'
  return style(forced || (isTty(stream) && !refused))
}

export function style(isColoured: boolean): Style {
  const mark = (name: keyof typeof CODES) => (text: string) =>
    isColoured && text !== '' ? `\u001b[${CODES[name][0]}m${text}\u001b[${CODES[name][1]}m` : text
  return { bold: mark('bold'), dim: mark('dim'), red: mark('red'), green: mark('green'), yellow: mark('yellow') }
}
