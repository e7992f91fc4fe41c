/**
 * The JSON Schema (draft 2020-12) of a configuration file, from the settings: for editors, and for checks before a deployment. It
 * accepts every file that the program accepts; rules between settings, named files and required settings are left to the program.
 */
import type { JsonSchema } from '../src/config/schema/formats/formats.ts';
import {
  DEFAULT_NAME,
  INHERITED_BY_CREDENTIALS,
  INHERITED_BY_ROUTES,
  ROUTE_SETTINGS,
} from '../src/config/schema/schema-routes.ts';
import { SETTINGS, settingOf, type SettingKey } from '../src/config/schema/schema.ts';
import type { SettingDefinition } from '../src/config/schema/setting.ts';

/** The document as text. */
export function renderJsonSchema(): string {
  const settings = [...SETTINGS.keys()].map((key) => [key, describeSetting(key)] as const);
  const { properties } = nest(settings);
  return JSON.stringify({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Configuration file of bearer-sidecar',
    description: 'Generated from the settings by tools/config-reference.ts. An empty value means the default.',
    type: ['object', 'null'],
    properties: {
      $schema: { type: 'string', description: 'The location of this schema, for editors.' },
      ...properties,
      credentials: describeCredentials(),
      routes: describeRoutes(),
    },
    additionalProperties: false,
  });
}

function describeSetting(key: SettingKey): JsonSchema {
  const { doc, env, format, default: value } = settingOf(key);
  // An empty value is the default, which a required setting can have from its variable.
  const schema = { description: `${doc} ${env}`, anyOf: [format.schema, { type: 'null' }] };
  return value === null ? schema : { ...schema, default: value };
}

function describeOwnSetting({ doc, format, required }: SettingDefinition): JsonSchema {
  return { description: doc, anyOf: required === undefined ? [format.schema, { type: 'null' }] : [format.schema] };
}

function describeRoutes(): JsonSchema {
  const own = Object.entries(ROUTE_SETTINGS).map(
    ([key, setting]: [string, SettingDefinition]) =>
      [key, key === 'name' ? describeName(setting.doc) : describeOwnSetting(setting)] as const,
  );
  const inherited = [...INHERITED_BY_ROUTES].map(([key, top]) => [key, describeSetting(top)] as const);
  const items = { ...nest([...own, ...inherited]), type: 'object', required: ['name', 'pathPrefix'] };
  return {
    description: 'One section for each API, or part of one.',
    anyOf: [{ type: 'array', items }, { type: 'null' }],
  };
}

function describeCredentials(): JsonSchema {
  const settings = [...INHERITED_BY_CREDENTIALS].map(([key, top]) => [key, describeSetting(top)] as const);
  const named = nest([['name', describeName('Name of the credential.')], ...settings]);
  return {
    description: 'One section for each name, or a list of sections with a name.',
    anyOf: [
      { type: 'array', items: { ...named, type: 'object', required: ['name'] } },
      { type: 'object', propertyNames: nameSchema(), additionalProperties: nest(settings) },
      { type: 'null' },
    ],
  };
}

function describeName(description: string): JsonSchema {
  return { description, ...nameSchema() };
}

function nameSchema(): JsonSchema {
  return { ...ROUTE_SETTINGS.name.format.schema, not: { const: DEFAULT_NAME } };
}

/** A section with sections in it, from dotted keys. */
function nest(entries: readonly (readonly [string, JsonSchema])[]): JsonSchema & { readonly properties: JsonSchema } {
  const properties: Record<string, JsonSchema> = {};
  const groups = Map.groupBy(entries, ([key]) => key.split('.', 1)[0] ?? key);
  for (const [name, group] of groups) {
    const leaf = group.find(([key]) => key === name)?.[1];
    const below = group.map(([key, schema]) => [key.slice(name.length + 1), schema] as const);
    properties[name] = leaf ?? nest(below);
  }
  return { type: ['object', 'null'], properties, additionalProperties: false };
}
