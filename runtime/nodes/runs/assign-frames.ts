import { toHex, utf8 } from '../../../shared/sign/bytes.ts'
import type { CurveKeys } from '../../../shared/sign/curve-keys.ts'
import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import type { SealedTexts } from '../../agents/texts.ts'
import { type ManifestEnvelope, manifestAad } from '../sealed-payloads.ts'
import type { RemoteRun } from './remote-run.ts'
import type { RunLimit } from './remote-run-store.ts'

export interface AssignFramesDeps {
  versionOf: (
    versionId: string,
  ) => Promise<
    { number: number; manifest: Manifest; manifestHash: string; sealed: SealedTexts | undefined } | undefined
  >
  sealTo: CurveKeys['sealTo']
}

/** What the order to execute a run says of it. */
export interface Ordered
  extends Pick<
    RemoteRun,
    'id' | 'epoch' | 'agentId' | 'agentName' | 'versionId' | 'createdMs' | 'sessionId' | 'parentRunId' | 'depth'
  > {
  forkedFrom?: RemoteRun['forkedFrom']
  /** As it was sealed for the run, or for its schedule. */
  input: { sealed: Uint8Array; schedule: string | undefined }
  limit: RunLimit | undefined
}

export type AssignFrames = ReturnType<typeof assignFrames>

/** Loaded with the first order, and once: an import costs each time. */
let encoder: Promise<typeof import('../../../shared/tunnel/control-bytes.ts')> | undefined

/** The orders to execute runs, as the bytes that wait for a node. The manifest of a version is sealed once for each pool. */
export function assignFrames({ versionOf, sealTo }: AssignFramesDeps) {
  const manifests = new Map<string, Uint8Array>()

  async function manifestOf(
    { id, versionId, agentId, agentName }: Ordered,
    poolKey: Uint8Array<ArrayBuffer>,
  ): Promise<{ box: Uint8Array; texts: SealedTexts | undefined }> {
    const version = await versionOf(versionId)
    if (!version) throw new Error(`run ${id} is of a version that is gone: ${versionId}`)
    const { number, manifest, manifestHash, sealed: texts } = version
    const key = `${versionId} ${toHex(poolKey)}`
    const known = manifests.get(key)
    if (known !== undefined) return { box: known, texts }
    const envelope: ManifestEnvelope = { agentId, agentName, versionId, number, manifest, manifestHash }
    const box = await sealTo(poolKey, utf8(JSON.stringify(envelope)), manifestAad(versionId))
    if (manifests.size > 500) manifests.clear()
    manifests.set(key, box)
    return { box, texts }
  }

  return async (run: Ordered, poolKey: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> => {
    const { input, limit, forkedFrom } = run
    encoder ??= import('../../../shared/tunnel/control-bytes.ts')
    const { controlBytes } = await encoder
    const { box, texts } = await manifestOf(run, poolKey)
    return controlBytes({
      case: 'assign',
      value: {
        runId: run.id,
        epoch: BigInt(run.epoch),
        agentVersionId: run.versionId,
        inputSealed: input.sealed as Uint8Array<ArrayBuffer>,
        ...(input.schedule !== undefined && { inputSchedule: input.schedule }),
        manifestSealed: box as Uint8Array<ArrayBuffer>,
        createdUnixMs: BigInt(run.createdMs),
        ...(run.sessionId !== undefined && { sessionId: run.sessionId }),
        ...(run.parentRunId !== undefined && { parentRun: run.parentRunId, depth: run.depth }),
        ...(texts && { textsSealed: texts.box }),
        ...(forkedFrom && { forkedRun: forkedFrom.runId, forkedStep: forkedFrom.stepId }),
        ...(limit?.costNano !== undefined && { runCostNanoUsd: BigInt(limit.costNano), runCostHard: limit.hard }),
        askBudget: limit?.ofDay ?? false,
        toolLimits: limit?.tools ?? {},
      },
    })
  }
}
