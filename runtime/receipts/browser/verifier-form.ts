import { verifyReceipt, whyNot } from './verify-receipt.ts'

const form = document.querySelector('form')!
const said = document.querySelector('output')!
for (const input of document.querySelectorAll<HTMLInputElement>('input[type=file]')) {
  input.addEventListener('change', async () => {
    const field = document.getElementById(input.dataset.for!) as HTMLTextAreaElement
    field.value = (await input.files?.[0]?.text()) ?? ''
  })
}
form.addEventListener('submit', async event => {
  event.preventDefault()
  const given = new FormData(form)
  const text = (name: string) => String(given.get(name) ?? '')
  let result: [boolean, string]
  try {
    const journal = text('journal').trim() === '' ? undefined : JSON.parse(text('journal'))
    result = await verifyReceipt(JSON.parse(text('receipt')), journal, text('fingerprint'))
  } catch (error) {
    result = [false, whyNot(error)]
  }
  said.className = result[0] ? 'valid' : 'invalid'
  said.textContent = (result[0] ? 'Valid. ' : 'Not valid. ') + result[1]
})
