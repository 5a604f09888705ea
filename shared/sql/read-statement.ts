// Comments and quoted text may hold any word; they are blanked before words are looked for.
const quietParts = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]/g

/** Whether a single SQL statement can only read. Errs towards no: what it does not recognise counts as a write. */
export function reads(sql: string): boolean {
  const words = sql.replace(quietParts, ' ').trim().replace(/;$/, '').toLowerCase()
  if (words.includes(';')) return false
  const verb = /^[a-z]+/.exec(words)?.[0]
  if (verb === 'select' || verb === 'values' || verb === 'explain') return true
  if (verb === 'with') return !/\b(insert|update|delete|replace\s+into)\b/.test(words)
  return verb === 'pragma' && !words.includes('=') && !words.includes('(')
}
