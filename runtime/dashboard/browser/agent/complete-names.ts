import { el, isComposing } from '../../../../shared/browser/dom.ts'
import type { Member } from '../../manifest-help.ts'

const MOST = 12

/** Offers names and values of a manifest below its editor: Ctrl+Space asks for them, and what is typed narrows them down. */
export function completeNames(editor: HTMLTextAreaElement, members: readonly Member[]): void {
  const list = el('ul', {
    class: 'completion plain',
    id: 'completion',
    role: 'listbox',
    tabindex: 0,
    'aria-label': 'What can stand here',
    hidden: true,
  })
  editor.after(list)
  let found: Completion | undefined
  let at = 0

  function close(): void {
    found = undefined
    list.hidden = true
    editor.removeAttribute('aria-activedescendant')
  }

  function draw(): void {
    found = completionAt(editor.value, editor.selectionStart, members)
    if (found === undefined) {
      close()
      return
    }
    const options = found.options.slice(0, MOST)
    at = Math.min(at, options.length - 1)
    list.replaceChildren(
      ...options.map(({ words, about }, i) => {
        const item = el(
          'li',
          { id: `completion-${i}`, role: 'option', 'aria-selected': String(i === at) },
          el('code', {}, words),
          ' ',
          el('small', {}, about),
        )
        // Before the editor loses the focus, and with it the place.
        item.addEventListener('mousedown', event => {
          event.preventDefault()
          take(i)
        })
        return item
      }),
    )
    list.hidden = false
    editor.setAttribute('aria-controls', list.id)
    editor.setAttribute('aria-activedescendant', `completion-${at}`)
  }

  function take(nth: number): void {
    const option = found?.options[nth]
    if (found === undefined || option === undefined) return
    editor.setRangeText(option.text, found.from, found.to, 'end')
    close()
    editor.dispatchEvent(new Event('input', { bubbles: true }))
  }

  editor.addEventListener('input', event => {
    // A change that no key made, such as a completion that was taken, opens nothing.
    if (!(event instanceof InputEvent)) return
    at = 0
    const isBegun = /"[\w-]*$/.test(editor.value.slice(0, editor.selectionStart))
    if (isBegun || found !== undefined) draw()
  })
  editor.addEventListener('keydown', event => {
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault()
      at = 0
      draw()
      return
    }
    if (found === undefined || isComposing(event)) return
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by !== undefined) at = (at + by + list.children.length) % list.children.length
    else if (event.key === 'Enter') take(at)
    else if (event.key === 'Escape') close()
    else return
    event.preventDefault()
    if (by !== undefined) draw()
  })
  editor.addEventListener('blur', close)
}

interface Completion {
  /** What of the text is replaced. */
  from: number
  to: number
  options: readonly { text: string; words: string; about: string }[]
}

interface Level {
  name: string | undefined
  isList: boolean
}

/** The names or values that can stand at a place of a manifest's text; undefined where nothing is known of it. */
export function completionAt(text: string, caret: number, members: readonly Member[]): Completion | undefined {
  const place = caretContext(text, caret)
  if (place === undefined) return undefined
  const { path, from, typed, isValue } = place
  let here = members
  for (const name of isValue ? path.slice(0, -1) : path) {
    const found = here.find(one => one.name === name)
    if (found === undefined) return undefined
    here = found.inside
  }
  const to = caret + /^[\w-]*"?/.exec(text.slice(caret))![0].length
  const begins = (word: string) => word.replaceAll('"', '').startsWith(typed)
  const own = here.find(({ name }) => name === path.at(-1))
  const options = isValue
    ? (own?.values ?? []).filter(begins).map(value => ({ text: value, words: value, about: '' }))
    : here
        .filter(({ name }) => begins(name))
        .map(({ name, about }) => {
          const isNamed = /^\s*:/.test(text.slice(to))
          return { text: `"${name}"${isNamed ? '' : ': '}`, words: name, about }
        })
  return options.length === 0 ? undefined : { from, to, options }
}

interface CaretContext {
  path: string[]
  from: number
  typed: string
  isValue: boolean
}

/** Where the caret is: the names that lead there, and the word that was started. The text before it need not be whole. */
function caretContext(text: string, caret: number): CaretContext | undefined {
  const levels: Level[] = []
  let name: string | undefined
  let isValue = false
  let at = 0
  while (at < caret) {
    const letter = text[at]!
    if (letter === '"') {
      const end = endOfString(text, at)
      if (end >= caret) return contextOfWord(at, text.slice(at + 1, caret))
      if (!isValue && !levels.at(-1)?.isList) name = text.slice(at + 1, end)
      at = end + 1
      continue
    }
    if (letter === '{' || letter === '[') {
      levels.push({ name, isList: letter === '[' })
      name = undefined
      isValue = false
    } else if (letter === '}' || letter === ']') {
      name = levels.pop()?.name
    } else if (letter === ':') isValue = true
    else if (letter === ',') {
      isValue = false
      name = undefined
    }
    at++
  }
  const word = /[\w-]*$/.exec(text.slice(0, caret))![0]
  return contextOfWord(caret - word.length, word)

  function contextOfWord(from: number, typed: string): CaretContext | undefined {
    if (levels.length === 0 || typed.includes('\n')) return undefined
    const isItem = levels.at(-1)?.isList === true
    const above = levels.slice(1).flatMap(level => (level.name === undefined ? [] : [level.name]))
    if (isItem) return undefined
    return { path: isValue ? [...above, name ?? ''] : above, from, typed, isValue }
  }
}

function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at
    // A text that was not closed ends with its line.
    else if (text[at] === '\n') return text.length
  }
  return text.length
}
