import { Command, Option, UsageError } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'
import { visible } from '../../shared/log/log.ts'
import { lateness, NotAProof, type ProofResult } from '../../shared/proof/receipt-proof.ts'
import { ambiguous, fingerprintOf, readProofFile, Unusable } from './input-files.ts'

/** `runtime verify`: needs no server, no store and no network. Exit code 0 valid, 1 invalid, 2 unusable. */
export class VerifyCommand extends Command {
  static override paths = [['verify']]
  static override usage = Command.Usage({
    description: 'Verify a receipt offline.',
    details: `Checks that the receipt was signed by the key whose fingerprint you kept (keyFingerprint of
/.well-known/platform-receipts). With --journal it also computes every hash of the exported journal again and compares it with the receipt.
Exit code 0: valid; 1: not valid; 2: the files cannot be used.`,
    examples: [
      ['A receipt alone', '$0 verify receipt.json --fingerprint 3f0c…'],
      ['With the journal of its run', '$0 verify receipt.json --journal journal.json --key keys.json'],
    ],
  })

  receipt = Option.String({ name: 'receipt.json' })
  journalFile = Option.String({ name: 'journal.json', required: false })
  journal = Option.String('--journal', { description: 'The answer of GET /v1/runs/{id}/journal.' })
  fingerprint = Option.String('--fingerprint', { description: 'SHA-256 of the public key, 64 hex digits.' })
  key = Option.String('--key', {
    description:
      'In place of the fingerprint: a saved copy of /.well-known/platform-receipts, or the public key in base64.',
  })
  json = Option.Boolean('--json', false, { description: 'Print the result as JSON.' })

  override async execute(): Promise<number> {
    if ((this.fingerprint === undefined) === (this.key === undefined)) {
      throw new UsageError('say whose receipt it must be: either --fingerprint or --key')
    }
    try {
      const result = await this.check()
      this.context.stdout.write((this.json ? jsonText(result) : inWords(result)) + '\n')
      return result.valid ? 0 : 1
    } catch (error) {
      if (!(error instanceof Unusable)) throw error
      this.context.stderr.write(visible(error.message) + '\n')
      return 2
    }
  }

  private async check(): Promise<ProofResult> {
    const { verifyOffline } = await import('../receipts/verify-offline.ts')
    const { nativeSha256 } = await import('../../shared/host/native-sha256.ts')
    const path = this.journal ?? this.journalFile
    let [receipt, journal]: unknown[] = []
    try {
      receipt = await readProofFile(this.receipt, 'a receipt')
      if (path !== undefined) journal = await readProofFile(path, 'an exported journal')
    } catch (error) {
      return ambiguous(error)
    }
    const fingerprint = this.fingerprint ?? (await fingerprintOf(this.key ?? '', receipt))
    if (!/^[0-9a-f]{64}$/i.test(fingerprint)) throw new Unusable('a fingerprint has 64 hex digits')
    try {
      return await verifyOffline({ receipt, journal, fingerprint }, nativeSha256)
    } catch (error) {
      if (!(error instanceof NotAProof)) throw error
      throw new Unusable(`${error.what === 'receipt' ? this.receipt : path} is not ${error.message}`)
    }
  }
}

/** The author of the files is unknown: nothing in them may begin a line. */
function inWords(result: ProofResult): string {
  if (!result.valid) {
    const at = result.brokenAt === undefined ? '' : ` (event ${result.brokenAt})`
    return visible(`NOT VALID  ${result.reason}${at}: ${result.explanation}`)
  }
  const { runId, agentName, status, costUsd, eventCount, finishedAt } = result.payload
  const lateBy = lateness(result.payload)
  return [
    `valid      run ${runId} of ${agentName}: ${status}, ${costUsd} USD, ended ${finishedAt}`,
    ...(lateBy === undefined ? [] : [`late       ${lateBy}`]),
    `journal    ${result.journal === 'ok' ? `all ${eventCount} events match` : 'not checked (no --journal given)'}`,
  ]
    .map(visible)
    .join('\n')
}
