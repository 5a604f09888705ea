import { utf8 } from '../../../shared/sign/bytes.ts'
import { type Sha256, sha256Hex } from '../../../shared/sign/sha256.ts'
import { sealTo } from '../../../shared/tunnel/sealed-payload.ts'
import { EMBEDDED_POOL, POOL_LABEL } from '../../agents/pool-label.ts'
import type { SealInput } from '../../runs/sealed-input.ts'
import type { NodeStore } from '../registry/store.ts'
import { scheduleInputAad } from '../sealed-payloads.ts'

export interface ScheduleInputsDeps {
  nodes: Pick<NodeStore, 'poolKey' | 'onlyPool'>
  /** This process executes runs. */
  embedded: boolean
  engaged: () => boolean
  labelsOf: (tenantId: string, agentName: string) => Promise<Readonly<Record<string, string>>>
  sha256: Sha256
}

/** Seals inputs of schedules to the pool that their runs go to: the one that the prompt of a version would be sealed to. */
export function scheduleInputs({ nodes, embedded, engaged, labelsOf, sha256 }: ScheduleInputsDeps): SealInput {
  return async ({ tenantId, agentName, sealed }, scheduleId, input) => {
    // Without any node no pool has a key.
    if (embedded && !engaged() && sealed === undefined) return undefined
    const named = (await labelsOf(tenantId, agentName))[POOL_LABEL] ?? sealed?.pool
    const pool = named ?? (embedded ? undefined : await nodes.onlyPool(tenantId))
    if (pool === undefined || pool === EMBEDDED_POOL) return undefined
    const poolKey = await nodes.poolKey(tenantId, pool)
    if (poolKey === undefined) return undefined
    const text = utf8(input)
    const box = await sealTo(poolKey, text, scheduleInputAad(scheduleId))
    return { pool, box, hash: sha256Hex(text, sha256), length: input.length }
  }
}
