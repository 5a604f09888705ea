import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { exportForgeries } from '../../../tests/proofs/export-forgeries.ts'
import { overHttp, type Post } from '../../../tests/proofs/http-verifier.ts'
import { routerProofs } from '../../../tests/proofs/router-proofs.ts'
import { runForgeries } from '../../../tests/proofs/run-forgeries.ts'
import { proofVars, runtimeProofs } from '../../../tests/proofs/runtime-proofs.ts'
import { servedReason } from '../../../tests/proofs/served-reasons.ts'
import { inStore } from '../../../tests/proofs/stored-export.ts'
import { commandLine, type Handed } from '../../../tests/proofs/verifiers.ts'
import { KEY } from '../../../tests/runtime/api.ts'
import type { Arena } from '../arena.ts'
import type { Attack, Attempt } from '../attempt.ts'

/** Undefined where a verifier says what it should. */
const unlessSaid = (who: string, expected: string, said: string): string | undefined =>
  said === expected ? undefined : `${who} says ${said} and not ${expected}`

/** Every forgery of the tests, handed to the command line and to a service that has the records and the keys. */
async function forgeries(here: Arena): Promise<Attempt[]> {
  const folder = join(here.folder, 'proofs')
  await mkdir(folder)
  const [runs, exports_] = await Promise.all([runtimeProofs(folder), routerProofs()])
  const { origin } = await here.serve('runtime', 'proofs-service', proofVars(folder))
  const post: Post = (path, body) => {
    const headers = {
      'content-type': 'application/json',
      ...(path.startsWith('/v1') && { authorization: `Bearer ${KEY}` }),
    }
    return fetch(origin + path, { method: 'POST', headers, body: new Uint8Array(body) })
  }
  const all: (Handed & { name: string; reason: string })[] = [
    ...(await runForgeries(runs)),
    ...(await exportForgeries(exports_)),
  ]
  return all.map(one => ({
    name: one.name,
    async run() {
      const served = 'text' in one ? await inStore(folder, one) : await overHttp(post, one)
      return (
        unlessSaid('the command line', one.reason, await commandLine(folder, one)) ??
        unlessSaid('the service', servedReason(one), served)
      )
    },
  }))
}

export const proofs: readonly Attack[] = [{ name: 'forged proofs', attempts: forgeries }]
