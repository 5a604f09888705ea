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

/**
 * What changes between two versions of a file, as one place of it; undefined is a file that is not there. Lines around the place are left
 * out, and so is a last line that only gets or loses its end: start-up files hold keys, and a plan is what people paste elsewhere.
 */
export function lineDiff(path: string, before: string | undefined, after: string | undefined): string {
  const [old, now] = [linesOf(before), linesOf(after)]
  let same = 0
  while (same < old.length && same < now.length && body(old[same]) === body(now[same])) same++
  const ends = [old, now].map(lines => same === 0 || lines[same - 1]?.endsWith('\n') === true)
  let tail = 0
  while (tail < old.length - same && tail < now.length - same && old.at(-1 - tail) === now.at(-1 - tail)) tail++
  const [gone, come] = [old.slice(same, old.length - tail), now.slice(same, now.length - tail)]
  const place = (lines: readonly string[]) => (lines.length === 0 ? `${same},0` : `${same + 1},${lines.length}`)
  return [
    `--- ${before === undefined ? '/dev/null' : path}`,
    `+++ ${after === undefined ? '/dev/null' : path}`,
    `@@ -${place(gone)} +${place(come)} @@`,
    ...(ends[0] === ends[1] ? [] : [`\\ The line before ${ends[1] ? 'gets' : 'loses'} its line end`]),
    ...gone.map(line => `-${body(line)}`),
    ...come.map(line => `+${body(line)}`),
    '',
  ].join('\n')
}

/** Each with its line end. */
function linesOf(text: string | undefined): string[] {
  return text?.match(/[^\n]*\n|[^\n]+$/g) ?? []
}

const body = (line: string | undefined) => (line?.endsWith('\n') ? line.slice(0, -1) : line)
