/**
 * Writes config/reference.md and config/default.yaml from the schema, so that neither can fall behind it.
 * `node tools/config-reference.ts` writes them; with `--check` it writes nothing and exits 1 when one is stale.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format as prettify, resolveConfig } from 'prettier';
import { stringify } from 'yaml';
import type { SettingValue } from '../src/config/formats.ts';
import { SETTINGS } from '../src/config/schema.ts';
import type { Setting } from '../src/config/setting.ts';

const REFERENCE_HEAD = `# Configuration reference

Generated from the schema by \`node tools/config-reference.ts\`; do not edit.

Later wins: defaults < file (YAML or JSON, named by \`--config\` or \`SIDECAR_CONFIG\`) < environment. Unknown keys in a file are
errors, unknown \`SIDECAR_\` variables are warnings. In the environment an empty variable counts as not set, numbers are plain
decimal digits, booleans \`true\` or \`false\`, lists are separated by commas; in a file numbers and booleans are written without
quotes and lists may be arrays. Times are milliseconds, sizes bytes. Of a file that holds a credential, one line end at its end
is dropped. \`bearer-sidecar config\` prints what applies and where it came from.
`;

const DEFAULT_HEAD = `# Every setting with its default. Generated from the schema by \`node tools/config-reference.ts\`; do not edit.
# null = not set. Copy what you change into a file of your own: example.yaml shows a small one.
`;

function renderReference(): string {
  let text = REFERENCE_HEAD;
  let section = '';
  for (const [key, setting] of SETTINGS) {
    const next = key.includes('.') ? key.slice(0, key.indexOf('.')) : 'top level';
    if (next !== section)
      text += `\n## ${next}\n\n| key | variable | format | default | what it does |\n|---|---|---|---|---|\n`;
    section = next;
    const cells = [`\`${key}\``, `\`${setting.env}\``, setting.format.expected, showDefault(setting), setting.doc];
    text += `| ${cells.map(escapeCell).join(' | ')} |\n`;
  }
  return text;
}

function showDefault({ default: value, required }: Setting): string {
  if (required !== undefined) return 'required';
  if (value === null) return 'not set';
  return isEmpty(value) ? 'none' : `\`${Array.isArray(value) ? value.join(',') : String(value)}\``;
}

function isEmpty(value: SettingValue): boolean {
  return Array.isArray(value) && value.length === 0;
}

function escapeCell(text: string): string {
  // Outside of code, `*` and `<` would be read as markup.
  return text.startsWith('`') ? text : text.replaceAll(/[|*<\\]/g, String.raw`\$&`);
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
  { path: 'config/reference.md', parser: 'markdown', render: renderReference },
  { path: 'config/default.yaml', parser: 'yaml', render: renderDefaults },
] as const;

async function main(isCheck: boolean): Promise<void> {
  for (const { path, parser, render } of OUTPUTS) {
    const absolute = fileURLToPath(new URL(`../${path}`, import.meta.url));
    const text = await prettify(render(), { ...(await resolveConfig(absolute)), parser });
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
