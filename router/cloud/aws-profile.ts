import { TransportError } from '../upstream/transport.ts'
import { type SsoProfile, ssoKeys } from './aws-sso.ts'
import { type AwsKeys, assumedKeys, webIdentityKeys } from './aws-sts.ts'
import type { Expiring, SourceDeps } from './credential-request.ts'

/** What a profile may name as the source of its role. */
export type NamedSources = Readonly<
  Record<
    'Environment' | 'EcsContainer' | 'Ec2InstanceMetadata',
    (deps: SourceDeps) => Expiring<AwsKeys> | undefined | Promise<Expiring<AwsKeys> | undefined>
  >
>

type Section = Readonly<Record<string, string>>
interface Profiles {
  byName: ReadonlyMap<string, Section>
  sessions: ReadonlyMap<string, Section>
}

/** Profiles may name each other for their credentials; a longer way is a mistake. */
const MOST_STEPS = 5

interface Search {
  deps: SourceDeps
  region: string
  profiles: Profiles
  sources: NamedSources
}

/** The keys of the profile that `AWS_PROFILE` names, or of the one called default; undefined where none is set up. */
export async function profileKeys(
  deps: SourceDeps,
  region: string,
  sources: NamedSources,
): Promise<Expiring<AwsKeys> | undefined> {
  const { host, env } = deps
  const name = env.AWS_PROFILE || undefined
  if (host === undefined) {
    if (name === undefined) return undefined
    throw new TransportError('AWS_PROFILE names a profile of a file, and this host has no files')
  }
  const profiles = await readProfiles(deps)
  const section = profiles.byName.get(name ?? 'default')
  if (name === undefined && (section === undefined || !SET_UP.some(key => section[key]))) return undefined
  return keysOfProfile({ deps, region, profiles, sources }, name ?? 'default', [])
}

const SET_UP = ['aws_access_key_id', 'role_arn', 'sso_session', 'sso_start_url', 'credential_process', 'login_session']

async function keysOfProfile(search: Search, name: string, seen: readonly string[]): Promise<Expiring<AwsKeys>> {
  const { deps, region, profiles, sources } = search
  const section = profiles.byName.get(name)
  const refuse = (why: string) => new TransportError(`AWS profile "${name.slice(0, 64)}" ${why}`)
  if (section === undefined) throw refuse('is in neither file')
  const fixed = fixedKeys(section, deps)
  // A profile may be the source of its own role: then its keys are meant.
  if (fixed !== undefined && (seen.includes(name) || !section.role_arn)) return fixed
  if (seen.includes(name) || seen.length >= MOST_STEPS) throw refuse('names itself as its source')
  if (section.mfa_serial) throw refuse('asks for a code at each sign-in, which a server cannot give')
  if (section.role_arn) {
    const role = {
      arn: section.role_arn,
      sessionName: section.role_session_name,
      externalId: section.external_id,
      durationS: section.duration_seconds,
    }
    if (section.web_identity_token_file)
      return webIdentityKeys(deps, region, { role, tokenFile: section.web_identity_token_file })
    if (section.source_profile) {
      const by = await keysOfProfile(search, section.source_profile, [...seen, name])
      return assumedKeys(deps, region, { role: { ...role, durationS: role.durationS ?? '3600' }, by: by.value })
    }
    const named = section.credential_source ?? ''
    const source = Object.hasOwn(sources, named) ? sources[named as keyof NamedSources] : undefined
    if (source === undefined) throw refuse('has a role and no source that it is assumed with')
    const by = await source(deps)
    if (by === undefined) throw refuse(`takes its source from ${section.credential_source}, where no keys are`)
    return assumedKeys(deps, region, { role: { ...role, durationS: role.durationS ?? '3600' }, by: by.value })
  }
  if (section.sso_session || section.sso_start_url) return ssoKeys(deps, ssoOf(section, profiles, refuse))
  if (section.credential_process) throw refuse('runs a program for its keys, which the router does not')
  throw refuse('holds no credentials that the router can use')
}

/** Other programs replace what stands in the file, so it is read again from time to time. */
const FILE_MS = 600_000

function fixedKeys(
  { aws_access_key_id: id, aws_secret_access_key: secret, aws_session_token: token }: Section,
  { clock }: SourceDeps,
): Expiring<AwsKeys> | undefined {
  if (!id || !secret) return undefined
  const value = { accessKeyId: id, secretAccessKey: secret, sessionToken: token || undefined }
  return { value, until: clock.now().getTime() + FILE_MS }
}

function ssoOf(section: Section, { sessions }: Profiles, refuse: (why: string) => TransportError): SsoProfile {
  const session = section.sso_session ? sessions.get(section.sso_session) : section
  const { sso_account_id: accountId, sso_role_name: roleName } = section
  const region = session?.sso_region
  const cachedAs = section.sso_session ?? section.sso_start_url
  if (!accountId || !roleName || !region || !cachedAs) throw refuse('lacks a part of its single sign-on')
  return { accountId, roleName, region, cachedAs }
}

async function readProfiles({ host, env }: SourceDeps): Promise<Profiles> {
  const at = (given: string | undefined, name: string) => given || (host?.home && `${host.home}/.aws/${name}`)
  const read = async (path: string | undefined) => (path && host ? await host.readFile(path).catch(() => '') : '')
  const config = sectionsOf(await read(at(env.AWS_CONFIG_FILE, 'config')))
  const credentials = sectionsOf(await read(at(env.AWS_SHARED_CREDENTIALS_FILE, 'credentials')))
  const byName = new Map<string, Section>()
  const sessions = new Map<string, Section>()
  for (const [title, section] of config) {
    const [kind, name] = splitTitle(title)
    if (kind === 'sso-session' && name !== undefined) sessions.set(name, section)
    else if (kind === 'profile' && name !== undefined) byName.set(name, section)
    else if (title === 'default' && !byName.has(title)) byName.set(title, section)
  }
  for (const [title, section] of credentials) byName.set(title, { ...byName.get(title), ...section })
  return { byName, sessions }
}

function splitTitle(title: string): [kind: string, name: string | undefined] {
  const at = title.search(/\s/)
  return at < 0
    ? [title, undefined]
    : [
        title.slice(0, at),
        title
          .slice(at)
          .trim()
          .replace(/^"(.*)"$/, '$1'),
      ]
}

/** The sections of a file in AWS's form of INI; settings that stand inside a setting are left out. */
export function sectionsOf(text: string): Map<string, Section> {
  const sections = new Map<string, Record<string, string>>()
  let current: Record<string, string> | undefined
  for (const raw of text.split(/\r?\n/)) {
    const line = raw.replace(/(?:^|\s)[#;].*$/, '').trimEnd()
    const title = /^\[([^\]]+)\]$/.exec(line.trim())?.[1]?.trim()
    if (title !== undefined) {
      current = sections.get(title) ?? (Object.create(null) as Record<string, string>)
      sections.set(title, current)
      continue
    }
    const at = line.indexOf('=')
    if (current === undefined || at < 1 || /^\s/.test(line)) continue
    current[line.slice(0, at).trim()] = line.slice(at + 1).trim()
  }
  return sections
}
