import type { z } from 'zod'
import type { AnswerOf, Endpoint } from '../wire/endpoint.ts'

/** One event of a stream: its place, to resume from, its name, and what it says. */
export interface StreamEvent<T = unknown> {
  readonly id: string | undefined
  readonly event: string
  readonly data: T
}

export interface CallOptions {
  signal?: AbortSignal
  /** For operations that create something: calls with one key do the work once. Made by the client where it is not given. */
  idempotencyKey?: string
  /** For streams: the `id` of an event that was read before; what follows begins behind it. */
  lastEventId?: string | undefined
  /** For streams: called each time that the service does not answer while a stream is opened again. */
  onUnanswered?: () => void
}

type Part<E, K extends 'params' | 'query' | 'body'> =
  E extends Readonly<Record<K, infer S extends z.ZodType>>
    ? Record<never, never> extends z.input<S>
      ? { [P in K]?: z.input<S> }
      : { [P in K]: z.input<S> }
    : Record<never, never>

export type ArgumentsOf<E> = Part<E, 'params'> & Part<E, 'query'> & Part<E, 'body'>

/** Left out where nothing is needed. */
type Parameters<E> =
  Record<never, never> extends ArgumentsOf<E>
    ? [args?: ArgumentsOf<E>, options?: CallOptions]
    : [args: ArgumentsOf<E>, options?: CallOptions]

type Content<E> = E extends { responses: { 200: { contentType: infer C } } } ? C : 'application/json'

type Streamed<E> = E extends { responses: { 200: { schema: infer S extends z.ZodType } } } ? z.output<S> : unknown

type Listed<E> = E extends { responses: { 200: { headers: { Link: string } } } } ? AnswerOf<E> : undefined

/** The lines of an answer that can be had line by line. */
type Lined<E> = E extends { responses: { 200: { asText: 'application/x-ndjson' } } } ? AnswerOf<E> : undefined

/** What `each` walks over: all pages of a list, or all lines of an answer. */
type Walked<E> =
  Listed<E> extends readonly (infer T)[] ? T : Lined<E> extends { readonly events: readonly (infer T)[] } ? T : never

/** One operation as a function: a stream gives events; a list, and an answer of lines, can be walked over by `each`. */
export type OperationOf<E> =
  Content<E> extends 'text/event-stream'
    ? (...given: Parameters<E>) => AsyncGenerator<StreamEvent<Streamed<E>>>
    : Content<E> extends 'application/json'
      ? ((...given: Parameters<E>) => Promise<AnswerOf<E>>) &
          ([Walked<E>] extends [never] ? unknown : { each(...given: Parameters<E>): AsyncGenerator<Walked<E>> })
      : (...given: Parameters<E>) => Promise<string>

export type Groups = Readonly<Record<string, Readonly<Record<string, Endpoint>>>>

/** Every operation of a service that a key may call, by resource. */
export type ClientOf<G extends Groups> = {
  readonly [Group in keyof G]: {
    readonly [Name in keyof G[Group] as G[Group][Name]['auth'] extends 'cookie' ? never : Name]: OperationOf<
      G[Group][Name]
    >
  }
}
