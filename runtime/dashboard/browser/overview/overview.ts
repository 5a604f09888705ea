import { root } from '../shell/page-api.ts'
import { toast } from '../shell/toast.ts'
import { startDemo } from './demo-run.ts'

// The part of the page with the button is drawn anew when something changes.
document.addEventListener('click', async event => {
  const button = event.target instanceof Element ? event.target.closest<HTMLButtonElement>('#demo-run') : null
  if (button === null) return
  button.disabled = true
  try {
    location.href = `${root}runs/${await startDemo()}`
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error))
    button.disabled = false
  }
})
