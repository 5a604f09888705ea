import { readJson } from '../../../shared/json/read-json.ts'
import { maskForms, secretForms } from '../../../shared/sign/secret-forms.ts'
import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import { RunFailure } from '../failure.ts'
import type { Egress, Offered, RunSandbox, Sandboxes, SandboxFor } from './sandboxes.ts'

/** A shorter one would tear holes into anything. */
const LEAST_SECRET = 4

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
  const forms: string[] = []

  async function open(): Promise<RunSandbox> {
    const env: Record<string, string> = {}
    for (const { env: name, ref } of manifest.secrets) {
      const value = await secret(ref)
      if (value === undefined) throw new RunFailure('secret_missing', `there is no ${ref}`)
      env[name] = value
      if (value.length >= LEAST_SECRET) forms.push(...secretForms(value))
    }
    const { limits, files, egress } = manifest
    return sandboxes.open({ runId, session, offered, limits, files, env, egress: { rules: egress, decided }, fileKeys })
  }

  // What a command says must not carry a secret into the journal, or to the model. It is found in the usual encodings as well.
  const withoutSecrets = (text: string) => maskForms(text, forms)

  return {
    get(): Promise<RunSandbox> {
      opened ??= open()
      return opened
    },
    /** The rules of its way out, and the receiver of decisions. */
    egress: { rules: manifest.egress, decided },
    withoutSecrets,
    withoutSecretsIn: (output: unknown): unknown => readJson(withoutSecrets(JSON.stringify(output))),
    async close(): Promise<void> {
      const open = await opened?.catch(() => undefined)
      await open?.close()
    },
  }
}

/** Where something ran and what it reached, for the journal and thereby for the receipt. */
export function provenance(room: RunSandbox) {
  const { backend, accel, image } = room.offered
  const egress = room.reached()
  const meta = {
    backend,
    kernelRelease: room.kernelRelease,
    ...(accel && { accel }),
    ...(image && { image }),
    ...(egress.length > 0 && { egress }),
  }
  return { isolationUsed: backend, meta }
}
