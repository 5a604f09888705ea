import { ApiError } from '../../shared/http/api-error.ts'
import { leavesRoom, tooLarge } from '../../shared/http/body-limit.ts'
import type { RateLimited } from '../../shared/log/log.ts'
import type { BuiltinTable } from '../../shared/prices/builtin.ts'
import { joined } from '../../shared/sign/bytes.ts'
import { requestHeaders, responseHeaders } from '../../shared/wire/router/headers.ts'
import { type ActiveConfig, mayRoute } from '../active-config.ts'
import type { Callers } from '../auth/callers.ts'
import type { Limits } from '../config/routing-config.ts'
import type { Answer } from '../enforce/commit-response.ts'
import { type EnforceDeps, type EnforceInput, enforce } from '../enforce/enforce.ts'
import { refusalOf } from '../errors.ts'
import type { ShedReason } from '../metrics/live-metrics.ts'
import { isPassed, type RelayDeps, relay } from '../observe/relay.ts'
import { type Target, targetOf, versioned } from '../observe/target.ts'
import { decoderOf, headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'
import { decideCall } from './decide-call.ts'
import { answerRefusal, type Exchange, type HeldBody } from './exchange.ts'
import { listsModels, modelList } from './model-list.ts'

export interface CallDeps extends RelayDeps {
  callers: Callers
  newId: () => string
  builtinPrices: () => Promise<BuiltinTable>
  active: () => ActiveConfig
  enforcing: (active: ActiveConfig) => EnforceDeps
  /** For what the log says once a minute, however many calls fail by it. */
  once: RateLimited
  /** Hears of a call that was refused because too many are being answered. */
  refuseWhenFull: (reason: ShedReason) => void
  room: BodyRoom
}

/**
 * Answers a request to a provider path, whose host is answering so many already. Refuses it at once when those are as many as are allowed,
 * which is `full`; undefined for a path of the router's own, which must answer while it is busy.
 */
export type HandleCall = (exchange: Exchange, inFlight?: number) => 'taken' | 'full' | undefined

interface Call {
  exchange: Exchange
  traceId: string
  /** Path and query as the provider has them. */
  target: string
  path: string
  to: Target
  /** Once it is decided that the call is passed on as it is. */
  isObserved: boolean
}

export type BodyRoom = ReturnType<typeof bodyRoom>

/**
 * The bytes of requests, and of answers that are read whole, that a process holds at a time: `usual` for all processes together, where the config does not
 * say how many. Of several tenants none takes all of it, nor all places for calls: each may take seven times what it leaves free.
 */
export function bodyRoom(usual: number, processes = 1) {
  let together = 0
  const tenants = new Map<string, { calls: number; bytes: number }>()
  function shareOf(tenantId: string) {
    const share = tenants.get(tenantId) ?? { calls: 0, bytes: 0 }
    tenants.set(tenantId, share)
    return share
  }

  /** `tenantId` where there are several. */
  function open(limits: Pick<Limits, 'maxHeldBytes' | 'maxBodyBytes'>, tenantId?: string): HeldBody {
    const most = Math.max((limits.maxHeldBytes ?? usual) / processes, limits.maxBodyBytes)
    const share = tenantId === undefined ? undefined : shareOf(tenantId)
    let own = 0
    let isFree = false
    const fits = (bytes: number) => {
      const free = most - together - bytes
      if (free < 0) return false
      // Its only call has all that is left.
      return share === undefined || share.bytes === own || leavesRoom(share.bytes + bytes, free)
    }
    const count = (bytes: number) => {
      own += bytes
      together += bytes
      if (share) share.bytes += bytes
    }
    return {
      fits,
      add(bytes, always = false) {
        if (!always && !fits(bytes)) return false
        if (!isFree) count(bytes)
        return true
      },
      free() {
        count(-own)
        isFree = true
      },
      another: () => open(limits, tenantId),
      get isScarce() {
        return together > most / 2
      },
    }
  }

  return {
    open,
    /** Takes a place for a call of one of several tenants, and gives it back by what it returns; undefined where the tenant has its share. */
    enter(tenantId: string, inFlight: number, { maxConcurrency }: Pick<Limits, 'maxConcurrency'>) {
      const share = shareOf(tenantId)
      if (share.calls > 0 && !leavesRoom((share.calls + 1) * processes, maxConcurrency - inFlight)) return undefined
      share.calls++
      return () => void share.calls--
    },
  }
}

/** The refusal of a call that has no room; `connection: close`, since what is left of its body is not worth reading. */
export class NoRoomError extends ApiError<'overloaded'> {
  constructor() {
    const message =
      'the requests that are being answered take up all the bytes that this router holds at once: try again'
    super('overloaded', message, { headers: { 'retry-after': '1', connection: 'close' } })
  }
}

/** The one way into a call on every host: target, access, decision, then relay or enforce, and one place that answers errors. */
export function createHandleCall(deps: CallDeps): HandleCall {
  return (exchange, inFlight = 0) => {
    const { method, headers } = exchange
    const target = versioned(exchange.target)
    const query = target.indexOf('?')
    const path = query < 0 ? target : target.slice(0, query)
    const to = targetOf(method, path, headers)
    if (!to) return undefined
    const call: Call = { exchange, traceId: deps.newId(), target, path, to, isObserved: false }
    const active = deps.active()
    if (inFlight >= active.config.limits.maxConcurrency) {
      deps.refuseWhenFull('concurrency')
      refuse(overload(), call, deps)
      return 'full'
    }
    answerCall(call, active, inFlight, deps).catch((error: unknown) => {
      if (error instanceof NoRoomError) deps.refuseWhenFull('bytes')
      refuse(error, call, deps)
    })
    return 'taken'
  }
}

async function answerCall(call: Call, active: ActiveConfig, inFlight: number, deps: CallDeps): Promise<void> {
  const { limits } = active.config
  const tenantId = admit(call, deps)
  const sharing = deps.callers.areOfSeveral ? tenantId : undefined
  const leave = sharing === undefined ? undefined : deps.room.enter(sharing, inFlight, limits)
  if (sharing !== undefined && leave === undefined) {
    deps.refuseWhenFull('concurrency')
    throw overload()
  }
  const held = deps.room.open(limits, sharing)
  try {
    await answerAdmitted(call, { tenantId, held }, active, deps)
  } finally {
    held.free()
    leave?.()
  }
}

/** Whose call it is; what may not be asked is thrown as a refusal. */
function admit({ exchange, to }: Call, deps: CallDeps): string {
  const { headers, contentLength = 0 } = exchange
  if (contentLength > deps.maxBodyBytes && !isPassed(to)) throw tooLarge(deps.maxBodyBytes)
  const origin = headerValue(headers, 'origin')
  const site = headerValue(headers, 'sec-fetch-site')
  const { tenantId } = deps.callers.ofCall(
    { host: exchange.host, origin, site },
    headerValue(headers, requestHeaders.key),
  )
  if (headerValue(headers, 'upgrade')?.toLowerCase().includes('websocket')) throw noUpgrade()
  return tenantId
}

async function answerAdmitted(
  call: Call,
  { tenantId, held }: { tenantId: string; held: HeldBody },
  active: ActiveConfig,
  deps: CallDeps,
): Promise<void> {
  const { exchange, traceId, target, to } = call
  const { headers, contentLength = 0 } = exchange
  const { limits } = active.config
  if (asksForModels(call, active)) {
    const list = modelList(call.path, to.dialect, active.config, (await deps.builtinPrices()).window)
    if (list !== undefined) return exchange.answer(200, jsonHead(list, traceId, deps), [list])
  }
  const base = { exchange, target, to, traceId, tenantId, limits, held }
  if (!readsBody(to, headers, active)) {
    call.isObserved = true
    return relay({ ...base, routeIx: null }, deps)
  }
  const times = { arrivedAt: deps.clock.now(), arrived: deps.clock.monotonic() }
  if (!held.fits(contentLength)) throw new NoRoomError()
  const body = await exchange.readBody(deps.maxBodyBytes, held)
  const isEncoded = headerValue(headers, 'content-encoding') !== undefined
  const plain = isEncoded ? await decodeBody(headers, body, deps.maxBodyBytes, held) : { headers, body }
  const decision = decideCall({ traceId, target, ...times, ...plain }, to, active, { tenantId })
  if ('enforce' in decision) return answerEnforced({ ...decision.enforce, held }, exchange, deps.enforcing(active))
  call.isObserved = true
  return relay({ ...base, routeIx: decision.observe, body }, deps)
}

/** Whether this is a look at the models of a router that routes; with the header of a mode it is the provider's to answer. */
function asksForModels({ path, to, exchange: { method, headers } }: Call, { config }: ActiveConfig): boolean {
  const isModels = to.api === 'passthrough' && method === 'GET' && /^\/v1\/models(?:\/|$)/.test(path)
  return isModels && listsModels(config) && headerValue(headers, requestHeaders.mode) === undefined
}

function jsonHead(body: Uint8Array, traceId: string, deps: CallDeps): HeaderList {
  const head: HeaderList = [
    ['content-type', 'application/json'],
    ['content-length', String(body.length)],
  ]
  if (deps.outHeaders) head.push([responseHeaders.traceId, traceId])
  return head
}

/** Without a config and without a header there is nothing to decide, so a body passes unread. */
function readsBody({ api, compacts }: Target, headers: HeaderList, active: ActiveConfig): boolean {
  const routable = api === 'messages' || api === 'chat' || api === 'responses' || compacts === true
  return routable && (mayRoute(active) || headerValue(headers, requestHeaders.mode) !== undefined)
}

async function answerEnforced(input: EnforceInput, exchange: Exchange, deps: EnforceDeps): Promise<void> {
  const stop = new AbortController()
  exchange.onGone(() => stop.abort())
  await sendAnswer(await enforce(input, deps, stop), exchange)
  // Until then the whole answer waits for its client.
  await exchange.sent()
}

/** The answer of a cascade comes whole or in frames. */
export async function sendAnswer(answer: Answer, exchange: Exchange): Promise<void> {
  if (!('frames' in answer)) {
    exchange.answer(answer.status, answer.headers, answer.pieces)
    return
  }
  exchange.head(answer.status, answer.headers)
  exchange.onGone(answer.gone)
  await answer.frames(frame => void exchange.write(frame))
  exchange.end()
}

function noUpgrade(): ApiError {
  const message = 'WebSockets are not passed on: send the same request by POST'
  return new ApiError('no_upgrade', message, { headers: { upgrade: 'HTTP/1.1', connection: 'upgrade' } })
}

function overload(): ApiError {
  const message = 'as many calls as this router takes at once are being answered: try again'
  return new ApiError('overloaded', message, { headers: { 'retry-after': '1', connection: 'close' } })
}

/** Answers what went wrong in the dialect of the path; an answer that is on its way already is cut. */
function refuse(error: unknown, { exchange, traceId, path, isObserved }: Call, deps: CallDeps): void {
  const { method, isGone } = exchange
  if (exchange.isStarted) {
    if (!isGone) deps.log.warn('an answer broke off before its end', { trace_id: traceId, error })
    exchange.cut(error)
    return
  }
  const {
    name,
    message,
    headers: more,
  } = refusalOf(error, { method, path, gone: isGone, trace_id: traceId }, deps.log, deps.once)
  answerRefusal(exchange, { name, message, headers: more }, { path, traceId, outHeaders: deps.outHeaders, isObserved })
}

/** Undefined for a body that is sent as it is. */
function encodingOf(headers: HeaderList): string | undefined {
  const encoding = headerValue(headers, 'content-encoding')?.trim().toLowerCase()
  return encoding === undefined || encoding === '' || encoding === 'identity' ? undefined : encoding
}

/**
 * A compressed request as it was before, with the headers that then hold: a routed request is read and written anew, and providers
 * take it uncompressed. Never more than the limit of any body is unpacked.
 */
async function decodeBody(
  headers: HeaderList,
  body: Uint8Array<ArrayBuffer>,
  maxBytes: number,
  held: Pick<HeldBody, 'add'>,
): Promise<{ headers: HeaderList; body: Uint8Array }> {
  const encoding = encodingOf(headers)
  if (encoding === undefined) return { headers, body }
  const stream = unpacker(encoding)
  const reader = new Blob([body]).stream().pipeThrough(stream).getReader()
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      size += value.length
      if (size > maxBytes) throw tooLarge(maxBytes)
      if (!held.add(value.length)) throw new NoRoomError()
      chunks.push(value)
    }
  } catch (error) {
    await reader.cancel().catch(() => undefined)
    if (error instanceof ApiError) throw error
    throw new ApiError(
      'bad_request',
      `the body is not what content-encoding says: it cannot be unpacked as ${encoding}`,
    )
  }
  const whole = joined(chunks)
  const left = headers.filter(([name]) => !/^content-(?:encoding|length)$/i.test(name))
  return { headers: [...left, ['content-length', String(whole.length)]], body: whole }
}

function unpacker(encoding: string): ReadableWritablePair<Uint8Array, BufferSource> {
  const found = decoderOf(encoding)
  if (found) return found
  const message = `content-encoding ${encoding} cannot be read here, and a routed body must be: send it with gzip, deflate or none`
  throw new ApiError('bad_request', message)
}
