/**
 * Writes config/reference.md, config/default.yaml and the JSON Schema from the schema, so that none can fall behind it.
 * `node tools/config-reference.ts` writes them; with `--check` it writes nothing and exits 1 when one is stale.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { isTextList, type SettingValue } from '../src/config/schema/formats/formats.ts';
import { INHERITED_BY_CREDENTIALS, INHERITED_BY_ROUTES, ROUTE_SETTINGS } from '../src/config/schema/schema-routes.ts';
import { JSON_SCHEMA_PATH, SETTINGS } from '../src/config/schema/schema.ts';
import { renderJsonSchema } from './json-schema.ts';
import type { Setting } from '../src/config/schema/setting.ts';
import { formatText } from './format-text.ts';

const REFERENCE_HEAD = `# Configuration reference

Generated from the schema by \`node tools/config-reference.ts\`; do not edit.

Later wins: defaults < file (YAML or JSON, named by \`--config\` or \`SIDECAR_CONFIG\`) < environment < flags (\`--rate 5\`,
\`--set throttle.rate=5\`). A value or its \`…File\` replaces the pair of an earlier source; both in one source are an error. Unknown keys in a file are
errors, but \`$schema\` may name [schema.json](schema.json), the JSON Schema of a file; unknown \`SIDECAR_\` variables are warnings. In the environment an empty variable counts as not set, numbers are plain
decimal digits, booleans \`true\` or \`false\`, lists are separated by commas; in a file numbers and booleans are written without
quotes and lists may be arrays. Times are milliseconds, sizes bytes. One trailing line end of a credential file is dropped.
\`bearer-sidecar config\` prints the effective values and their origins.

On SIGHUP the file is read again. Keys marked *changes on SIGHUP* take effect at once, also within a route; so do
\`pathPrefix\`, \`stripPrefix\` and \`methods\` of a route. When any other key has changed, no change is applied. In a fleet
\`throttle.rate\`, \`throttle.maxRate\`, \`throttle.burst\` and \`throttle.maxInFlight\` need a restart too.
`;

const LINE_WIDTH = 150;

type Described = Pick<Setting, 'doc' | 'format' | 'default' | 'required'>;

const DEFAULT_HEAD = `# Every setting with its default. Generated from the schema by \`node tools/config-reference.ts\`; do not edit.
# null = not set. Copy only the changed settings into your own file, as in example.yaml.
`;

function renderReference(): string {
  let text = REFERENCE_HEAD;
  let section = '';
  for (const [key, setting] of SETTINGS) {
    const next = key.includes('.') ? key.slice(0, key.indexOf('.')) : 'top level';
    if (next !== section) text += `\n## ${next}\n\n`;
    section = next;
    text += renderEntry(`**\`${key}\`** (\`${setting.env}\`)`, setting, setting.isLive ? ' *Changes on SIGHUP.*' : '');
  }
  return text + renderEntries();
}

const ROUTES_HEAD = `
## routes

In a file only: a list of sections, one for each API or part of one. Without it the settings above are the only route, \`default\`.
With it they remain that route, for every path that no other route takes, if \`upstream.baseUrl\` is set.

`;

const INHERITANCE = `
**A route inherits every setting that it does not contain from the top level.** A certificate and its key are inherited together or
not at all.
Further keys of a route, each as above:`;

const CREDENTIALS = `
## credentials

In a file only: a section with one section for each name, or a list of sections with a \`name\`; routes refer to that name. \`auth\` is
the credential \`default\`, which is used when the top level is a route or a route names no credential. Each credential that a route
uses has its own token, requested with its own settings only.

A credential inherits every setting that it does not contain from \`auth\`, with three exceptions. The settings of the client (method,
id, secret, key, certificate) are inherited together or not at all, and so are audience, scope and resource. With its own \`url\` or
\`issuer\` it inherits only \`timeoutMs\`, \`invalidationCooldownMs\` and \`settleMs\`, so that no secret goes to another server.
\`cacheFile\` is never inherited.
Keys of a credential, each as in \`auth\`:`;

function renderEntries(): string {
  let text = ROUTES_HEAD;
  for (const [key, setting] of Object.entries(ROUTE_SETTINGS)) text += renderEntry(`**\`${key}\`**`, setting, '');
  const names = (keys: ReadonlyMap<string, unknown>): string => [...keys.keys()].map((key) => `\`${key}\``).join(', ');
  const [ofRoute, ofCredential] = [INHERITED_BY_ROUTES, INHERITED_BY_CREDENTIALS].map((keys) =>
    wrap(`${names(keys)}.`, ''),
  );
  return `${text}${INHERITANCE}\n${ofRoute}\n${CREDENTIALS}\n${ofCredential}\n`;
}

/** @param mark what follows the description */
function renderEntry(title: string, setting: Described, mark: string): string {
  const { doc, format } = setting;
  const text = `- ${title}: ${escapeMarkup(doc)}${mark} Format: ${escapeMarkup(format.expected)}. Default: ${showDefault(setting)}.`;
  return `${wrap(text, '  ')}\n`;
}

/** A line begins with a letter or code only, since a number or a sign there may be markup. */
function wrap(text: string, indent: string): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line.length + word.length >= LINE_WIDTH && /^[a-z`(]/i.test(word)) {
      lines.push(line);
      line = indent + word;
    } else line += line === '' ? word : ` ${word}`;
  }
  return [...lines, line].join('\n');
}

function showDefault({ default: value, required }: Described): string {
  if (required !== undefined) return 'required';
  if (value === null) return 'not set';
  return isEmpty(value) ? 'none' : `\`${asText(value)}\``;
}

function asText(value: NonNullable<SettingValue>): string {
  if (typeof value !== 'object') return String(value);
  return isTextList(value) ? value.join(',') : JSON.stringify(value);
}

function isEmpty(value: SettingValue): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** Outside of code, `*` and `<` would be read as markup. */
function escapeMarkup(text: string): string {
  return text.replaceAll(/[*<\\]/g, String.raw`\$&`);
}

function renderDefaults(): string {
  let text = DEFAULT_HEAD;
  let open: string[] = [];
  for (const [key, setting] of SETTINGS) {
    const sections = key.split('.');
    const name = sections.pop() ?? key;
    const isOpen = (depth: number): boolean =>
      sections.slice(0, depth + 1).join('.') === open.slice(0, depth + 1).join('.');
    sections.forEach((section, depth) => {
      if (!isOpen(depth)) text += `${depth === 0 ? '\n' : ''}${'  '.repeat(depth)}${section}:\n`;
    });
    if (sections.length === 0) text += '\n';
    open = sections;
    const indent = '  '.repeat(sections.length);
    const value = stringify(setting.default, { collectionStyle: 'flow', lineWidth: 0 }).trim();
    text += `${indent}# ${setting.doc} ${setting.env}\n${indent}${name}: ${value}\n`;
  }
  return text;
}

const OUTPUTS = [
  { path: 'config/reference.md', render: renderReference },
  { path: 'config/default.yaml', render: renderDefaults },
  { path: JSON_SCHEMA_PATH, render: renderJsonSchema },
] as const;

async function main(isCheck: boolean): Promise<void> {
  for (const { path, render } of OUTPUTS) {
    const absolute = fileURLToPath(new URL(`../${path}`, import.meta.url));
    const text = await formatText(render(), path);
    if (!isCheck) {
      writeFileSync(absolute, text);
    } else if (readOrEmpty(absolute) !== text) {
      process.stderr.write(`${path} is stale: run node tools/config-reference.ts\n`);
      process.exitCode = 1;
    }
  }
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

await main(process.argv.includes('--check'));
