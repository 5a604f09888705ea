import { readJson } from '../../../shared/json/read-json.ts'
import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import { RunFailure } from '../failure.ts'
import type { Egress, Offered, RunSandbox, Sandboxes, SandboxFor } from './sandboxes.ts'

export interface RunSandboxDeps {
  sandboxes: Sandboxes
  runId: string
  session: SandboxFor['session']
  manifest: Manifest
  offered: Offered
  /** A secret of the tenant; undefined when there is none of this name. */
  secret: (ref: string) => Promise<string | undefined>
  decided: Egress['decided']
  fileKeys: SandboxFor['fileKeys']
}

export type SandboxOfRun = ReturnType<typeof sandboxOfRun>

/** The sandbox of one claim of a run: started by its first use, one for all that follow. */
export function sandboxOfRun({
  sandboxes,
  runId,
  session,
  manifest,
  offered,
  secret,
  decided,
  fileKeys,
}: RunSandboxDeps) {
  let opened: Promise<RunSandbox> | undefined
  const values: string[] = []

  async function open(): Promise<RunSandbox> {
    const env: Record<string, string> = {}
    for (const { env: name, ref } of manifest.secrets) {
      const value = await secret(ref)
      if (value === undefined) throw new RunFailure('secret_missing', `there is no ${ref}`)
      env[name] = value
      values.push(value)
    }
    const { limits, files, egress } = manifest
    return sandboxes.open({ runId, session, offered, limits, files, env, egress: { rules: egress, decided }, fileKeys })
  }

  // What a command says must not carry a secret into the journal, or to the model. A short one would tear holes into anything.
  const withoutSecrets = (text: string) =>
    values.reduce((from, value) => (value.length < 4 ? from : from.replaceAll(value, '***')), text)

  return {
    get(): Promise<RunSandbox> {
      opened ??= open()
      return opened
    },
    /** The rules of its way out, and who is told of decisions. */
    egress: { rules: manifest.egress, decided },
    withoutSecrets,
    withoutSecretsIn: (output: unknown): unknown => readJson(withoutSecrets(JSON.stringify(output))),
    async close(): Promise<void> {
      const open = await opened?.catch(() => undefined)
      await open?.close()
    },
  }
}

/** Where something ran, for the journal and thereby for the receipt. */
export function provenance({ offered: { backend, accel }, kernelRelease }: RunSandbox) {
  return { isolationUsed: backend, meta: { backend, kernelRelease, ...(accel && { accel }) } }
}
