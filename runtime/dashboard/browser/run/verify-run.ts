import { el } from '../../../../shared/browser/dom.ts'
import { readProof } from '../../../../shared/proof/read-proof.ts'
import { verifyReceipt, whyNot } from '../../../receipts/browser/verify-receipt.ts'
import { root } from '../shell/page-api.ts'

interface PublishedKeys {
  keys: { keyId: string; keyFingerprint: string }[]
}

async function read(path: string): Promise<string> {
  const answer = await fetch(root + path, { cache: 'no-store' })
  if (!answer.ok) throw new Error(`the runtime answered ${answer.status} for ${path}`)
  return answer.text()
}

/** Checks the receipt of a run here: its signature, and each hash of the journal, with nothing taken on trust but the list of keys. */
export async function verifyRun(button: HTMLElement): Promise<void> {
  const said = button.parentElement?.querySelector('output')
  const run = `ui/api/v1/runs/${button.dataset.verify}`
  said?.replaceChildren('Reading and hashing …')
  try {
    const [receipt, journal, keys] = await Promise.all([
      read(`${run}/receipt`),
      read(`${run}/journal`),
      read('.well-known/platform-receipts'),
    ])
    const named = (readProof(receipt) as { payload?: { keyId?: string } }).payload?.keyId
    const listed = (readProof(keys) as PublishedKeys).keys
    const fingerprint = listed.find(({ keyId }) => keyId === named)?.keyFingerprint
    if (fingerprint === undefined) throw new Error('the key of the receipt is not among the published ones')
    const [valid, words] = await verifyReceipt(receipt, journal, fingerprint)
    said?.replaceChildren(
      el('strong', { class: valid ? 'good' : 'bad' }, valid ? '✓ Valid. ' : '✗ Not valid. '),
      words,
      el('br'),
      el('small', {}, `Signed with the key ${fingerprint}. Compare it with the one that you keep elsewhere.`),
    )
  } catch (error) {
    said?.replaceChildren(el('span', { class: 'bad' }, whyNot(error)))
  }
}
