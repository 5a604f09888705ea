import { readJson } from '../json/read-json.ts'

export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json | undefined
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value)
}

export function asString(value: Json | undefined): string | null {
  return typeof value === 'string' ? value : null
}

export function asObject(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {}
}

export function asArray(value: Json | undefined): readonly Json[] {
  return isArray(value) ? value : []
}

/** The object's members without those named. */
export function without(object: JsonObject, ...names: string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !names.includes(key)))
}

/** A JSON text that may be anything, or undefined when it is not JSON. */
export function tryParse(text: string): Json | undefined {
  // An error costs as much as a long text.
  if (text === '') return undefined
  try {
    // JSON.parse gives nothing but the kinds of value that Json lists.
    return readJson(text) as Json
  } catch {
    return undefined
  }
}
