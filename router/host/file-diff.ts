import { lineDiff } from '../onboard/line-diff.ts'

/** What changes in a file, for a terminal: its bytes as UTF-8, and no byte that would steer the terminal. */
export function fileDiff(path: string, before: string | undefined, after: string | undefined): string {
  const diff = lineDiff(Buffer.from(path, 'utf8').toString('latin1'), before, after)
  const text = Buffer.from(diff, 'latin1').toString('utf8')
  return Array.from(text, char => (isControl(char) ? '\uFFFD' : char)).join('')
}

function isControl(char: string): boolean {
  const code = char.codePointAt(0) ?? 0
  return (code < 0x20 && char !== '\n' && char !== '\t' && char !== '\r') || (code >= 0x7f && code < 0xa0)
}
