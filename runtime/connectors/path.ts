import { ArgumentError } from './argument-error.ts'

/** A path with encoded arguments. A segment of dots alone would climb out of its place when the URL is read, so none may be. */
export function path(fixed: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return fixed.reduce((made, part, at) => made + segment(values[at - 1]!) + part)
}

/** One value, encoded. */
export function segment(value: string | number): string {
  const text = String(value)
  if (text === '' || /^\.+$/.test(text))
    throw new ArgumentError([{ path: '', message: `'${text}' cannot be part of a path` }])
  return encodeURIComponent(text.toWellFormed())
}
