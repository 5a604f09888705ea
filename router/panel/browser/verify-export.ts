import { ProofTextError, proofText } from '../../../shared/proof/read-proof.ts'
import { fromBase64 } from '../../../shared/sign/bytes.ts'
import { publicKey } from '../../../shared/sign/ed25519.ts'
import { sha256 } from '../../../shared/sign/sha256.ts'
import type { VerifyReport } from '../../../shared/wire/router/checkpoint.ts'
import type { TrustedKeys } from '../../traces/checkpoint.ts'
import { ExportLineError, exportExtras, exportRecords, isBlank, toKeys } from '../../traces/export-line.ts'
import { trustedKeys } from '../../traces/keys.ts'
import { signedReport } from '../../traces/signed-report.ts'
import { verifyRecords } from '../../traces/verify.ts'

/** What `router verify --file` says of an export, with the same code. */
export async function verifyExport(bytes: Uint8Array, key: string): Promise<VerifyReport> {
  try {
    const lines = proofText(bytes)
      .split('\n')
      .filter(line => !isBlank(line))
    const lots = () => oneLot(lines)
    const { checkpoints, keys: listed, feedback } = await exportExtras(lots())
    const keys = key.trim() === '' ? trustedKeys({ keys: listed.flatMap(({ keys }) => keys) }) : keptKeys(key.trim())
    const report = await verifyRecords({
      records: exportRecords(lots(), 'record'),
      ...(feedback && { feedback: exportRecords(lots(), 'feedback') }),
      checkpoints,
      ...(keys.size > 0 && { keys }),
      sha256,
    })
    return signedReport(report, keys.size > 0)
  } catch (error) {
    if (!(error instanceof ExportLineError) && !(error instanceof ProofTextError)) throw error
    return { valid: false, reason: error.reason, records: 0, tenants: [] }
  }
}

/** A public key in base64, or the keys that a router published. */
function keptKeys(text: string): TrustedKeys {
  try {
    if (text.startsWith('{')) return trustedKeys(toKeys(text))
    const key = publicKey(fromBase64(text))
    return new Map([[key.keyId, key.publicKey]])
  } catch (cause) {
    throw new Error('The public key cannot be read: paste its 44 characters of base64, or a list of published keys.', {
      cause,
    })
  }
}

async function* oneLot(lines: readonly string[]): AsyncGenerator<readonly string[]> {
  yield lines
}
