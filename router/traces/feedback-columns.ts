import { readJson } from '../../shared/json/read-json.ts'

/** The columns that repeat a report, as SQL gives them in one text; counts are made from them. */
export const feedbackColumns =
  'json_array(tenant_id, seq, feedback_id, trace_id, gate_id, reporter, verdict, ts_ms, hash)'

/** Whether columns say what the report says that they stand beside. */
export function matchesFeedback(columns: string, report: object): boolean {
  const { tenant_id, seq, feedback_id, trace_id, gate_id, reporter, verdict, ts, hash } = report as Record<
    string,
    unknown
  >
  const cells = [tenant_id, seq, feedback_id, trace_id, gate_id, reporter, verdict, Date.parse(String(ts)), hash]
  const expected = JSON.stringify(cells)
  try {
    // SQL and JSON.stringify may escape a character differently; the values decide.
    return columns === expected || JSON.stringify(readJson(columns)) === expected
  } catch {
    return false
  }
}
