import { writeFileSync } from 'node:fs'
import { clientOperations } from './client/client-operations.ts'

/** `npx node scripts/client.ts`: writes the table of operations that `waybill/client` calls; run it after a change of an endpoint. */
writeFileSync(new URL('../shared/client/operations.gen.ts', import.meta.url), clientOperations())
