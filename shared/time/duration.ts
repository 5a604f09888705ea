const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/

/** Reads `30`, `30s`, `500ms`, `5m` or `24h` as milliseconds; a plain number means seconds. */
export function parseDuration(text: string): number | undefined {
  const match = DURATION.exec(text.trim())
  if (!match) return undefined
  const unit = (match[2] ?? 's') as keyof typeof UNIT_MS
  return Math.round(Number(match[1]) * UNIT_MS[unit])
}
