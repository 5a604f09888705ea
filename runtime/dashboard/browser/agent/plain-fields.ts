/**
 * The members that are read most, as fields of their own beside the text of the manifest: what is typed in one changes the other. A
 * text that is no JSON at the moment is left alone.
 */
export function plainFields(editor: HTMLTextAreaElement): void {
  const fields = [...document.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>('[data-member]')]

  function read(): Record<string, unknown> | undefined {
    try {
      const value: unknown = JSON.parse(editor.value)
      return typeof value === 'object' && value !== null && !Array.isArray(value)
        ? (value as Record<string, unknown>)
        : undefined
    } catch {
      return undefined
    }
  }

  function fill(): void {
    const manifest = read()
    for (const field of fields) {
      field.disabled = manifest === undefined
      const value = manifest?.[field.dataset.member ?? '']
      if (manifest !== undefined && document.activeElement !== field)
        field.value = typeof value === 'string' ? value : ''
    }
  }

  for (const field of fields)
    field.addEventListener('input', () => {
      const manifest = read()
      if (manifest === undefined) return
      const name = field.dataset.member ?? ''
      const { [name]: _, ...others } = manifest
      const changed = field.value === '' ? others : { ...manifest, [name]: field.value }
      editor.value = JSON.stringify(changed, null, 2)
      editor.dataset.typed = ''
      editor.dispatchEvent(new Event('input', { bubbles: true }))
    })
  editor.addEventListener('input', fill)
  fill()
}
