import { proofText } from '../../../shared/proof/read-proof.ts'
import { verifyReceipt, whyNot } from './verify-receipt.ts'

const form = document.querySelector('form')!
const said = document.querySelector('output')!
for (const input of document.querySelectorAll<HTMLInputElement>('input[type=file]')) {
  input.addEventListener('change', async () => {
    const field = document.getElementById(input.dataset.for!) as HTMLTextAreaElement
    const bytes = await input.files?.[0]?.arrayBuffer()
    try {
      field.value = bytes === undefined ? '' : proofText(new Uint8Array(bytes))
    } catch (error) {
      field.value = ''
      tell(false, whyNot(error))
    }
  })
}
function tell(valid: boolean, words: string): void {
  said.className = valid ? 'valid' : 'invalid'
  said.textContent = (valid ? 'Valid. ' : 'Not valid. ') + words
}
form.addEventListener('submit', async event => {
  event.preventDefault()
  const given = new FormData(form)
  const text = (name: string) => String(given.get(name) ?? '')
  try {
    const journal = text('journal').trim() === '' ? undefined : text('journal')
    tell(...(await verifyReceipt(text('receipt'), journal, text('fingerprint'))))
  } catch (error) {
    tell(false, whyNot(error))
  }
})
