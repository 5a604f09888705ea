import { el } from '../../../shared/browser/dom.ts'
import { type GivenJournal, type GivenReceipt, verifyReceipt, whyNot } from '../../receipts/browser/verify-receipt.ts'
import { root } from './page-api.ts'

interface PublishedKeys {
  keys: { keyId: string; keyFingerprint: string }[]
}

async function read<T>(path: string): Promise<T> {
  const answer = await fetch(root + path, { cache: 'no-store' })
  if (!answer.ok) throw new Error(`the runtime answered ${answer.status} for ${path}`)
  return (await answer.json()) as T
}

/** Checks the receipt of a run here: its signature, and each hash of the journal, with nothing taken on trust but the list of keys. */
export function verifyButtons(): void {
  document.addEventListener('click', event => {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-verify]') : null
    if (button !== null) void verify(button)
  })
}

async function verify(button: HTMLElement): Promise<void> {
  const said = button.parentElement?.querySelector('output')
  const run = `ui/api/v1/runs/${button.dataset.verify}`
  said?.replaceChildren('Reading and hashing …')
  try {
    const [receipt, journal, keys] = await Promise.all([
      read<GivenReceipt>(`${run}/receipt`),
      read<GivenJournal>(`${run}/journal`),
      read<PublishedKeys>('.well-known/platform-receipts'),
    ])
    const fingerprint = keys.keys.find(({ keyId }) => keyId === receipt.payload?.keyId)?.keyFingerprint
    if (fingerprint === undefined) throw new Error('the key of the receipt is not among the published ones')
    const [valid, words] = await verifyReceipt(receipt, journal, fingerprint)
    said?.replaceChildren(
      el('strong', { class: valid ? 'good' : 'bad' }, valid ? '✓ Valid. ' : '✗ Not valid. '),
      words,
      el('br'),
      el('small', {}, `Signed with the key ${fingerprint}. Compare it with the one that you noted elsewhere.`),
    )
  } catch (error) {
    said?.replaceChildren(el('span', { class: 'bad' }, whyNot(error)))
  }
}
