import type { Mode, Profile } from '../../shared/wire/router/conventions.ts'
import { modeValues, readMode, requestHeaders } from '../../shared/wire/router/headers.ts'
import type { Route } from '../config/routing-config.ts'

export interface Resolved {
  readonly mode: Mode
  /** `none` when the request is only observed. */
  readonly profile: Profile | 'none'
  /** What the header decided: it names a profile, a mode, or nothing that counted. */
  readonly byHeader: 'mode' | 'profile' | null
}

type ModeRoute = Pick<Route, 'ladder' | 'mode' | 'profile' | 'headerModes'>

/** docs/spec/router.md §6.9: header before route before ROUTER_MODE, which the route's mode has taken in already. */
export function resolveMode(header: string | undefined, route: ModeRoute | undefined): Resolved | { error: string } {
  if (header === undefined) return route?.mode === 'enforce' ? enforce(route.profile, null) : observe(null)
  const asked = readMode(header)
  if (asked === undefined) return { error: `${requestHeaders.mode} takes ${either(modeValues)}` }
  if (route !== undefined && !route.headerModes.includes(asked))
    return { error: `this route takes ${either(route.headerModes)} in ${requestHeaders.mode}, not ${asked}` }
  if (asked === 'observe') return observe('mode')
  const ladder = route !== undefined && route.ladder.length > 0
  if (asked === 'enforce') {
    return ladder
      ? enforce(route.profile, 'mode')
      : { error: `${requestHeaders.mode}: enforce needs a route with a ladder, and no such route matches this request` }
  }
  return ladder ? enforce(asked, 'profile') : observe(null)
}

const observe = (byHeader: 'mode' | null): Resolved => ({ mode: 'observe', profile: 'none', byHeader })

const enforce = (profile: Profile, byHeader: Resolved['byHeader']): Resolved => ({ mode: 'enforce', profile, byHeader })

function either(values: readonly string[]): string {
  if (values.length === 0) return 'no value'
  return values.length === 1 ? values[0]! : `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`
}
