/** What checks a receipt is loaded when it is asked for: most who look at a run do not. */
export function verifyButtons(): void {
  document.addEventListener('click', async event => {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-verify]') : null
    if (button === null) return
    const { verifyRun } = await import('./verify-run.ts')
    await verifyRun(button)
  })
}
