/**
 * What an expected text matches: `…` stands for anything within a line, and a line that is `…` alone for any lines, also none.
 * White space at the ends of lines, and empty lines at the end, are not looked at.
 */
export function printedPattern(expected: string): RegExp {
  const lines = expected.trimEnd().split('\n')
  const parts = lines.map((line, index) => {
    const end = index === lines.length - 1 ? '' : '\n'
    if (line.trim() === '…') return '(?:.*\n)*?'
    return line.trimEnd().split('…').map(escaped).join('.*?') + `[ \\t]*${end}`
  })
  return new RegExp(`^${parts.join('')}\\s*$`)
}

/** How far a text gets on its way to what was expected: the first line that nothing printed, for the person who mends the guide. */
export function firstDifference(expected: string, printed: string): string {
  const lines = expected.trimEnd().split('\n')
  const held = lines.findLastIndex((_, index) =>
    printedPattern(`${lines.slice(0, index + 1).join('\n')}\n…`).test(`${printed.trimEnd()}\n`),
  )
  return lines[held + 1] ?? '(the end: more was printed than is written)'
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
