import { html } from 'hono/html'
import { visible } from '../../../shared/browser/visible-text.ts'
import type { AuditEntry } from '../../../shared/wire/runtime/audit.ts'
import type { ApiKey, User } from '../../../shared/wire/runtime/auth.ts'
import {
  type ModelSettings,
  type ProviderItem,
  type SecretItem,
  secretTools,
} from '../../../shared/wire/runtime/provider.ts'
import { resourceScopes, type Scope } from '../../../shared/wire/runtime/scopes.ts'
import type { Person } from '../../../shared/wire/runtime/user.ts'
import { type Delivery, type Webhook, webhookEvents } from '../../../shared/wire/runtime/webhook.ts'
import {
  action,
  badge,
  card,
  facts,
  form,
  live,
  nameShown,
  nothing,
  type Tab,
  table,
  tabPanels,
  when,
} from '../components.ts'
import type { Html, Page, Shown } from '../page.ts'
import { snippets } from '../snippets.ts'
import { auditLog, NEWEST_ACTS } from './settings-audit.ts'

export const settingsPage: Page = {
  path: '/settings',
  menu: 'Settings',
  personal: true,
  async render({ ask, user, root, query }) {
    const wanted = query('webhook')
    const owner = user.role === 'owner'
    const [keys, people, providers, models, secrets, webhooks, acts, deliveries] = await Promise.all([
      ask.maybe<ApiKey[]>('/v1/api-keys?limit=100'),
      ask.maybe<Person[]>('/v1/users?limit=200'),
      ask.get<ProviderItem[]>('/v1/settings/llm-providers'),
      ask.get<ModelSettings>('/v1/settings/models'),
      ask.get<SecretItem[]>('/v1/secrets'),
      ask.get<Webhook[]>('/v1/webhooks?limit=100'),
      ask.maybe<AuditEntry[]>(`/v1/audit-log?limit=${NEWEST_ACTS}`),
      wanted === undefined
        ? undefined
        : ask.get<Delivery[]>(`/v1/webhooks/${encodeURIComponent(wanted)}/deliveries?limit=25`),
    ])
    const all: Tab[] = [
      {
        id: 'providers',
        words: 'Model providers',
        body: card('Model providers', html`${live('providers', providerRows(providers))}${PROVIDER_FORM}`),
      },
      { id: 'models', words: 'Models', body: card('Models', modelForm(models)) },
      {
        id: 'keys',
        words: 'API keys',
        body: card(
          'API keys',
          keys === undefined
            ? html`<p class="hint">Your role cannot see keys.</p>`
            : html`${live('keys', keyRows(keys, owner))}${owner ? KEY_FORM : html`<p class="hint">The owner makes and revokes keys.</p>`}`,
        ),
      },
      {
        id: 'people',
        words: 'People',
        body: card(
          'People',
          people === undefined
            ? html`<p class="hint">Your role cannot see the other people here.</p>`
            : html`${live('people', peopleRows(people))}${PERSON_FORM}`,
        ),
      },
      {
        id: 'webhooks',
        words: 'Webhooks',
        body: card(
          'Webhooks',
          html`${live('webhooks', webhookRows(root, webhooks))}${deliveries === undefined ? '' : live('deliveries', deliveryRows(wanted ?? '', deliveries))}${WEBHOOK_FORM}`,
        ),
      },
      {
        id: 'secrets',
        words: 'Secrets',
        body: card('Secrets of agents', html`${live('secrets', secretRows(secrets))}${SECRET_FORM}`),
      },
      {
        id: 'audit',
        words: 'Audit log',
        body: live('audit', auditLog(root, acts, { keys: keys ?? [], people: people ?? [] })),
      },
      { id: 'you', words: 'You', body: card('You', you(user)) },
      { id: 'api', words: 'API', body: SNIPPETS },
    ]
    const body = html`<h1>Settings</h1>
${tabPanels('Settings', `${root}settings`, all, query('tab') ?? (wanted === undefined ? undefined : 'webhooks'))}`
    return { title: 'Settings', body }
  },
}

const SNIPPETS = snippets([
  { about: 'The model providers', operation: 'settings.providers' },
  {
    about: 'A key that only reads runs',
    operation: 'access.createKey',
    body: { name: 'reader', scopes: ['runs:read'] },
  },
])

function providerRows(providers: readonly ProviderItem[]): Html {
  if (providers.length === 0) {
    return nothing(
      'No provider is configured.',
      html`<p>Agents get simulated answers until one is, and each record says so.</p>`,
    )
  }
  return table(
    'Model providers',
    ['Provider', 'Key', 'Last test', 'Actions'],
    providers.map(({ provider, source, keyHint, baseUrl, lastTest }) => [
      html`${provider}${baseUrl === undefined ? '' : html`<br><small>${baseUrl}</small>`}`,
      html`${keyHint === undefined ? 'set' : `…${keyHint}`}${source === 'environment' ? html` <small>from the environment</small>` : ''}`,
      lastTest === undefined ? 'never' : html`${badge(lastTest.success ? 'succeeded' : 'failed')} ${when(lastTest.at)}`,
      html`${action('Test', { send: `POST /v1/settings/llm-providers/${provider}/test`, after: 'say', about: provider })}
${source === 'environment' ? '' : action('Forget', { send: `DELETE /v1/settings/llm-providers/${provider}`, confirm: `Forget the key of ${provider}?`, about: provider })}`,
    ]),
  )
}

const PROVIDER_FORM = html`<details class="needs-script"><summary>Configure a provider</summary>${form(
  { send: 'POST /v1/settings/llm-providers', after: 'saved:Saved. Test it above.' },
  html`<label>Provider <input name="provider" required list="provider-ids" spellcheck="false" placeholder="anthropic"></label>
<datalist id="provider-ids">${['anthropic', 'openai', 'google', 'openai-compatible', 'bedrock', 'vertex', 'router', 'demo'].map(id => html`<option value="${id}"></option>`)}</datalist>
<label>API key <input name="apiKey" type="password" autocomplete="off"></label>
<label>Base URL <input name="baseUrl" type="url" placeholder="the provider's own"></label>
<label>Region (bedrock) <input name="region"></label><label>Project (vertex) <input name="project"></label><label>Location (vertex) <input name="location"></label>
<button class="main">Save</button>`,
)}</details>`

const revoke = (id: string, name: string): Html =>
  action('Revoke', {
    send: `DELETE /v1/api-keys/${id}`,
    confirm: `Revoke ${name}? What uses it stops at once.`,
    about: name,
  })

function keyRows(keys: readonly ApiKey[], owner: boolean): Html {
  return keys.length === 0
    ? nothing('There is no API key.')
    : table(
        'API keys',
        ['Key', 'Scopes', 'State', 'Last used', ...(owner ? ['Actions'] : [])],
        keys.map(({ id, name, prefix, scopes: held, status, lastUsedAt }) => [
          html`${nameShown(name)}<br><small class="mono">${prefix}…</small>`,
          held.length === 0 ? 'everything in the tenant' : held.join(', '),
          badge(status),
          when(lastUsedAt),
          ...(owner ? [status === 'active' ? revoke(id, name) : ''] : []),
        ]),
      )
}

const BROAD: readonly [Scope, string][] = [
  ['read', 'looks at everything'],
  ['write', 'runs, changes and looks, but for keys and nodes'],
  ['admin', 'everything in the tenant'],
  ['platform:admin', 'the tenants of this installation'],
]
const resources = [...new Set(resourceScopes.map(one => one.slice(0, one.indexOf(':'))))]

const scopeBox = (scope: Scope, words: Shown, name?: string): Html =>
  html`<label><input type="checkbox" name="scopes" value="${scope}" data-as="many"${name === undefined ? '' : html` aria-label="${name}"`}>${words}</label>`

const KEY_FORM = html`<details class="needs-script"><summary>Make a key</summary>${form(
  { send: 'POST /v1/api-keys', after: 'once:rawKey' },
  html`<label>Name <input name="name" required maxlength="128"></label>
<fieldset><legend>What it may do; nothing chosen: everything in the tenant</legend>${BROAD.map(([scope, words]) => scopeBox(scope, html`<strong>${scope}</strong> ${words}`))}</fieldset>
<fieldset class="scopes"><legend>Or piece by piece</legend>${resources.map(
    name =>
      html`<span>${name}</span><div>${resourceScopes.filter(one => one.startsWith(`${name}:`)).map(one => scopeBox(one, one.slice(name.length + 1), one))}</div>`,
  )}</fieldset>
<button class="main">Make the key</button>`,
)}</details>`

function peopleRows(people: readonly Person[]): Html {
  return table(
    'People',
    ['Person', 'Role', 'State', 'Last login', 'Actions'],
    people.map(({ id, name, email, role, status, lastLoginAt }) => [
      html`${nameShown(name)}<br><small>${visible(email)}</small>`,
      role === 'owner' ? 'owner' : roleForm(id, email, role),
      badge(status),
      when(lastLoginAt),
      html`${
        status === 'disabled'
          ? action(
              'Enable',
              { send: `PATCH /v1/users/${id}`, about: email },
              html`<input type="hidden" name="disabled" value="false" data-as="flag">`,
            )
          : action(status === 'invited' ? 'New link' : 'Link for a new password', {
              send: `POST /v1/users/${id}/link`,
              after: 'link:invite#token=@linkToken',
              about: email,
            })
      }
${
  role === 'owner'
    ? ''
    : html`${
        status === 'disabled'
          ? ''
          : action(
              'Disable',
              {
                send: `PATCH /v1/users/${id}`,
                confirm: `Disable ${email}? All their logins end at once.`,
                after: `refresh:${email} is disabled.`,
                undo: { send: `PATCH /v1/users/${id}`, body: { disabled: false } },
                about: email,
              },
              html`<input type="hidden" name="disabled" value="true" data-as="flag">`,
            )
      }
${action('Remove', { send: `DELETE /v1/users/${id}`, confirm: `Remove ${email} for good?`, about: email })}`
}`,
    ]),
  )
}

function roleForm(id: string, email: string, role: string): Html {
  return form(
    {
      send: `PATCH /v1/users/${id}`,
      after: `refresh:The role of ${email} is changed.`,
      className: 'inline',
      label: `Role of ${email}`,
      undo: { send: `PATCH /v1/users/${id}`, body: { role } },
    },
    html`<select name="role" aria-label="Role of ${email}">${['member', 'viewer'].map(one => html`<option${one === role ? html` selected` : ''}>${one}</option>`)}</select> <button aria-label="Change the role of ${email}">Change</button>`,
  )
}

const PERSON_FORM = html`<details class="needs-script"><summary>Invite a person</summary>${form(
  { send: 'POST /v1/users', after: 'link:invite#token=@linkToken' },
  html`<label>Name <input name="name" required maxlength="128" autocomplete="off"></label>
<label>E-mail <input name="email" type="email" required autocomplete="off"></label>
<label>Role <select name="role"><option value="member">member: everything but keys, people and nodes</option><option value="viewer">viewer: looks only</option></select></label>
<button class="main">Make the link</button>
<p class="hint">Send them the link: it works once, within three days. They set their own password there.</p>`,
)}</details>`

function webhookRows(root: string, webhooks: readonly Webhook[]): Html {
  return webhooks.length === 0
    ? nothing(
        'No webhooks yet.',
        html`<p>A webhook notifies another service when runs end, wait or exceed a budget.</p>`,
      )
    : table(
        'Webhooks',
        ['Address', 'Events', 'State', 'Actions'],
        webhooks.map(({ id, url, events, enabled }) => [
          url,
          events.join(', ') || 'all',
          badge(enabled ? 'active' : 'paused'),
          html`<a href="${root}settings?tab=webhooks&webhook=${id}" aria-label="Deliveries to ${url}">Deliveries</a>
${action('Test', { send: `POST /v1/webhooks/${id}/test`, after: 'say', about: url })}
${action('Delete', { send: `DELETE /v1/webhooks/${id}`, confirm: `Tell ${url} nothing more?`, about: url })}`,
        ]),
      )
}

function deliveryRows(webhookId: string, deliveries: readonly Delivery[]): Html {
  return html`<h3>Deliveries</h3>${
    deliveries.length === 0
      ? html`<p class="hint">Nothing has been sent to it yet.</p>`
      : table(
          'Deliveries',
          ['Event', 'Outcome', 'At', 'Actions'],
          deliveries.map(({ id, type, outcome, status, error = '', attempt, at }) => [
            type,
            html`${badge(outcome)} ${status ?? ''} ${error} <small>attempt ${attempt}</small>`,
            when(at),
            outcome === 'failed' || outcome === 'retrying'
              ? action('Send again', { send: `POST /v1/webhooks/${webhookId}/deliveries/${id}/redeliver`, about: type })
              : '',
          ]),
        )
  }`
}

const WEBHOOK_FORM = html`<details class="needs-script"><summary>Add a webhook</summary>${form(
  { send: 'POST /v1/webhooks', after: 'once:secret' },
  html`<label>Address <input name="url" type="url" required placeholder="https://"></label>
<fieldset><legend>Events; none: all</legend>${webhookEvents.map(one => html`<label><input type="checkbox" name="events" value="${one}" data-as="many">${one}</label>`)}</fieldset>
<button class="main">Add it</button>`,
)}</details>`

function secretRows(secrets: readonly SecretItem[]): Html {
  return secrets.length === 0
    ? html`<p class="hint">None. A manifest names a secret as <code>secret/name</code>; its value is never shown again.</p>`
    : table(
        'Secrets',
        ['Name', 'Hosts', 'Uses', 'Changed', 'Actions'],
        secrets.map(secret => {
          const { name, updatedAt, tools } = secret
          const hosts = hostLines(secret)
          return [
            html`<code>secret/${name}</code>`,
            html`${hosts.length === 0 ? 'any' : hosts.map(line => html`<code>${line}</code><br>`)}${bindingForm(name, hosts, tools)}`,
            tools === undefined ? 'every use' : tools.map(tool => html`${USES[tool]}<br>`),
            when(updatedAt),
            action('Delete', {
              send: `DELETE /v1/secrets/${name}`,
              confirm: `Delete the secret ${name}?`,
              about: name,
            }),
          ]
        }),
      )
}

const USES: Readonly<Record<(typeof secretTools)[number], string>> = {
  mcp: 'headers of MCP servers',
  sandbox: 'sandboxes',
}

/** As they are typed; the port of https goes without saying. */
function hostLines({ hosts = [] }: SecretItem): string[] {
  return hosts.flatMap(({ host, ports }) => ports.map(port => (port === 443 ? host : `${host}:${port}`)))
}

function bindingForm(name: string, hosts: readonly string[], tools: SecretItem['tools']): Html {
  return html`<details class="needs-script"><summary aria-label="Bind ${name}">Bind</summary>${form(
    { send: `PUT /v1/secrets/${name}`, after: 'refresh:Changed.', label: `Hosts and uses of ${name}` },
    html`<label>Hosts, one per line; none: any <textarea class="code" name="hosts" data-as="hosts-or-null" rows="3" spellcheck="false" placeholder="api.example.com:443">${hosts.join('\n')}</textarea></label>
<label>Uses <select name="tools" data-as="json">${useChoices(tools)}</select></label>
<button class="main">Save</button>`,
  )}</details>`
}

function useChoices(chosen: SecretItem['tools']): Html {
  const choices: { tools: SecretItem['tools']; words: string }[] = [
    { tools: undefined, words: 'every use' },
    ...secretTools.map(tool => ({ tools: [tool], words: `${USES[tool]} only` })),
    { tools: [...secretTools], words: secretTools.map(tool => USES[tool]).join(' and ') },
  ]
  const isChosen = (tools: SecretItem['tools']) => tools?.toSorted().join() === chosen?.toSorted().join()
  return html`${choices.map(({ tools, words }) => html`<option value="${JSON.stringify(tools ?? null)}"${isChosen(tools) ? html` selected` : ''}>${words}</option>`)}`
}

const SECRET_FORM = html`<details class="needs-script"><summary>Set a secret</summary>${form(
  { send: 'PUT /v1/secrets/{secretName}', after: 'refresh:Stored.' },
  html`<label>Name <input name="secretName" data-path required maxlength="128" pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" spellcheck="false"></label>
<label>Value <input name="value" type="password" required autocomplete="off"></label>
<label>Hosts that it may be sent to, one per line; none: any, or as before <textarea class="code" name="hosts" data-as="hosts" rows="3" spellcheck="false" placeholder="api.example.com:443"></textarea></label>
<label>Uses <select name="tools" data-as="json"><option value="">every use, or as before</option>${secretTools.map(tool => html`<option value="${JSON.stringify([tool])}">${USES[tool]} only</option>`)}</select></label>
<button class="main">Store it</button>`,
)}</details>`

function modelForm(models: ModelSettings): Html {
  return form(
    { send: 'PUT /v1/settings/models', after: 'saved:Saved.' },
    html`<label>Aliases: each an ordered list of provider/model <textarea class="code" name="aliases" data-as="json" rows="10" spellcheck="false" required>${JSON.stringify(models.aliases, null, 2)}</textarea></label>
<label>Prices in US dollars per million tokens, for models that have none <textarea class="code" name="prices" data-as="json" rows="4" spellcheck="false" required>${JSON.stringify(models.prices, null, 2)}</textarea></label>
<button class="main">Save</button>`,
  )
}

function you({ name, email, role }: User): Html {
  return html`${facts([
    ['Name', name],
    ['E-mail', email],
    ['Role', role],
  ])}<details class="needs-script"><summary>Change your password</summary>${form(
    { send: 'POST auth/password', after: 'saved:Changed. Your other logins are over.' },
    html`<label>Current password <input name="currentPassword" type="password" required autocomplete="current-password"></label>
<label>New password, at least 12 characters <input name="newPassword" type="password" required minlength="12" maxlength="256" autocomplete="new-password"></label>
<button class="main">Change it</button>`,
  )}</details>`
}
