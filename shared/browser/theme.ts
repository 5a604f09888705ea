const YEAR_S = 31_536_000

/** The colours that the reader wants, whatever the system says; kept in a cookie, so that the service draws the next page in them. */
export function themeSwitch(): void {
  const choice = document.querySelector<HTMLSelectElement>('#theme')
  if (choice === null) return
  const page = document.documentElement
  choice.value = page.dataset.theme ?? ''
  choice.addEventListener('change', () => {
    const { value } = choice
    if (value === '') delete page.dataset.theme
    else page.dataset.theme = value
    // biome-ignore lint/suspicious/noDocumentCookie: browsers have the Cookie Store API under HTTPS alone
    document.cookie = `wb_theme=${value}; path=/; max-age=${value === '' ? 0 : YEAR_S}; samesite=strict`
  })
}
