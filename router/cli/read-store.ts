import { UsageError } from 'clipanion'
import type { z } from 'zod'
import type { Db } from '../../shared/sql/db.ts'
import { check } from '../../shared/wire/issues.ts'
import { type AuditReads, auditReads } from '../audit/reads.ts'
import { openPlaced, storePlaces } from '../host/open-store.ts'

type Vars = Readonly<Record<string, string | undefined>>

interface Asked {
  /** A store; else the environment names it, or a directory of several. */
  db: string | undefined
  tenant: string | undefined
}

/** Opens the trace store, or the shards, for one question and closes them again. */
export async function readStore<T>(
  vars: Vars,
  { db: address, tenant }: Asked,
  ask: (reads: AuditReads) => Promise<T>,
): Promise<T> {
  const open: Db[] = []
  try {
    for (const place of await storePlaces(vars, address, tenant)) open.push(await openPlaced(vars, place.address))
    return await ask(auditReads(...open))
  } finally {
    for (const db of open) db.close()
  }
}

/** Flags are checked by the schema of the same question over HTTP; the complaint names the flag. */
export function readFlags<T extends z.ZodType>(schema: T, flags: Readonly<Record<string, unknown>>): z.output<T> {
  const checked = check(schema, flags)
  if (checked.ok) return checked.value
  throw new UsageError(checked.details.map(({ path, message }) => `--${path}: ${message}`).join('\n'))
}
