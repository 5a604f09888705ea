import type { InStatement } from '@libsql/client/web'
import { ApiError } from '../../shared/http/api-error.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { classPrices, PriceError } from '../../shared/prices/price.ts'
import { type Db, type RowOf, readRow, rowsOf } from '../../shared/sql/db.ts'
import type { ModelAlias } from '../../shared/wire/runtime/model-name.ts'
import { type ModelSettings, modelSettings } from '../../shared/wire/runtime/provider.ts'
import type { modelSettings as modelSettingsTable } from '../schema/tables.ts'

const SAVE = 'restore a backup, or save them again'

export type ModelSettingsStore = ReturnType<typeof modelSettingsStore>

export function modelSettingsStore(db: Db) {
  async function stored(tenantId: string): Promise<ModelSettings | undefined> {
    const sql = 'select settings from model_settings where tenant_id = ?'
    const [row] = rowsOf<Pick<RowOf<typeof modelSettingsTable>, 'settings'>>(
      await db.execute({ sql, args: [tenantId] }),
    )
    // Strictly: of a price under another name, calls would be charged as if it were not there.
    return (
      row && readRow('the prices and aliases of models', row, () => modelSettings.parse(readJson(row.settings)), SAVE)
    )
  }

  return {
    /** What the tenant has set; undefined until it does. */
    stored,

    /** What the tenant has set, or what holds until it does. */
    get: async (tenantId: string): Promise<ModelSettings> => (await stored(tenantId)) ?? DEFAULT_SETTINGS,

    /** `also` are written in the same transaction. */
    async put(
      tenantId: string,
      settings: ModelSettings,
      nowMs: number,
      also: readonly InStatement[] = [],
    ): Promise<void> {
      const put = {
        sql: `insert into model_settings (tenant_id, settings, updated_ms) values (?1, ?2, ?3)
on conflict do update set settings = ?2, updated_ms = ?3`,
        args: [tenantId, JSON.stringify(settings), nowMs],
      }
      await db.write([put, ...also])
    },
  }
}

/** Refuses a price that could not be kept exactly, before it makes the bill of a run wrong. */
export function checkPrices({ prices }: ModelSettings): void {
  const details = Object.entries(prices).flatMap(([model, { inPerMTok, outPerMTok }]) => {
    try {
      classPrices({ input: inPerMTok, output: outPerMTok }, 'chat')
      return []
    } catch (error) {
      if (!(error instanceof PriceError)) throw error
      return [{ path: `prices.${model}`, message: error.message }]
    }
  })
  const [first] = details
  if (first) throw new ApiError('validation_failed', `${first.path}: ${first.message}`, { details })
}

const FRONTIER = ['anthropic/claude-opus-5', 'openai/gpt-5.5', 'google/gemini-2.5-pro']
const LARGE = ['anthropic/claude-sonnet-5', 'openai/gpt-5.4', 'google/gemini-2.5-pro']
const SMALL = ['anthropic/claude-haiku-4-5', 'openai/gpt-5-mini', 'google/gemini-2.5-flash']
const EDGE = ['google/gemini-2.5-flash-lite', 'openai/gpt-5-nano', 'anthropic/claude-haiku-4-5']

const CAPABILITIES: Record<ModelAlias, readonly string[]> = {
  'reasoning-frontier': FRONTIER,
  'reasoning-large': LARGE,
  'reasoning-small': SMALL,
  'chat-large': LARGE,
  'chat-small': SMALL,
  'chat-edge': EDGE,
  'vision-large': LARGE,
  'vision-small': SMALL,
  'code-large': LARGE,
  'code-small': SMALL,
}

/** Candidates by alias until a tenant says otherwise. The router comes first: choosing a model is what it is for. */
export const DEFAULT_SETTINGS: ModelSettings = {
  aliases: {
    auto: ['router/auto', ...LARGE],
    ...Object.fromEntries(Object.entries(CAPABILITIES).map(([alias, models]) => [alias, [...models]])),
  },
  prices: {},
  windows: {},
}
