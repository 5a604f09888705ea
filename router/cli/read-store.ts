import { UsageError } from 'clipanion'
import type { z } from 'zod'
import { check } from '../../shared/wire/issues.ts'
import { type AuditReads, auditReads } from '../audit/reads.ts'
import { openStoreToRead } from '../host/open-store.ts'

type Vars = Readonly<Record<string, string | undefined>>

/** Opens the trace store for one question and closes it again. */
export async function readStore<T>(
  vars: Vars,
  address: string | undefined,
  ask: (reads: AuditReads) => Promise<T>,
): Promise<T> {
  const db = await openStoreToRead(vars, address)
  try {
    return await ask(auditReads(db))
  } finally {
    db.close()
  }
}

/** Flags are checked by the schema of the same question over HTTP; the complaint names the flag. */
export function readFlags<T extends z.ZodType>(schema: T, flags: Readonly<Record<string, unknown>>): z.output<T> {
  const checked = check(schema, flags)
  if (checked.ok) return checked.value
  throw new UsageError(checked.details.map(({ path, message }) => `--${path}: ${message}`).join('\n'))
}
