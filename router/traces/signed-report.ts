import type { VerifyReport } from '../../shared/wire/router/checkpoint.ts'

/**
 * The verdict on a file from outside: records under no signed checkpoint may be consistent, but any author can make such a chain. Without
 * keys no signature was checked.
 */
export function signedReport(report: VerifyReport, areKeysKnown: boolean): VerifyReport {
  if (!report.valid) return report
  const reason = unsigned(report) === undefined ? (areKeysKnown ? undefined : 'no_key') : 'unsigned'
  return reason === undefined ? report : { ...report, valid: false, reason }
}

/** What nothing signed covers, in words. */
export function unsigned({ tenants }: VerifyReport): string | undefined {
  if (tenants.length === 0) return 'nothing at all is in it'
  const open = tenants.flatMap(({ tenant_id, unanchored_tail, unanchored_feedback }) => [
    ...(unanchored_tail > 0 ? [`${unanchored_tail} records of ${tenant_id}`] : []),
    ...(unanchored_feedback > 0 ? [`${unanchored_feedback} reports of feedback of ${tenant_id}`] : []),
  ])
  return open.length === 0 ? undefined : open.join(', ')
}
