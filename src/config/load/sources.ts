/**
 * Reads the two sources of settings, a file (YAML 1.2, which includes JSON) and the environment, into flat maps of raw values with
 * their origin. Values are not checked here.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { LineCounter, parseDocument } from 'yaml';
import { describeEnds, truncate, type ConfigProblem, type RawValue } from './problems.ts';
import { describeFileError, systemErrorCode } from '../../platform/file-errors.ts';
import { tryRead } from '../../platform/try-read.ts';
import { findNearest } from './nearest.ts';
import { CONFIG_VARIABLE, REMOVED_SETTINGS, SETTINGS, settingOf } from '../schema/schema.ts';
import { VARIABLE_PREFIX, variableOfPath } from '../schema/schema.ts';
import type { SettingKey } from '../schema/schema.ts';
import { LIST_KEYS, type ListKey } from '../schema/schema-routes.ts';
import { readSections } from './sections.ts';

export interface ConfigSource {
  readonly given: ReadonlyMap<SettingKey, RawValue>;
  /** Unchecked lists of entries. */
  readonly lists: ReadonlyMap<ListKey, RawValue>;
  /** Unknown keys of the file, and settings that are gone. */
  readonly problems: readonly ConfigProblem[];
  /** Unknown variables, and values with blanks or quotes at their ends. */
  readonly warnings: readonly string[];
}

/** Names the JSON Schema of a file. */
const SCHEMA_KEY = '$schema';

/** Reads the variables of settings; an empty one counts as not set. Never fails. */
export function readEnvironment(env: Readonly<Record<string, string | undefined>>): ConfigSource {
  const variables = new Map([...SETTINGS].map(([key, { env: variable }]) => [variable, key]));
  const given = new Map<SettingKey, RawValue>();
  const problems: ConfigProblem[] = [];
  const warnings: string[] = [];
  for (const [variable, text] of Object.entries(env)) {
    const key = variables.get(variable);
    const removed = [...REMOVED_SETTINGS].find(([path]) => variableOfPath(path) === variable);
    if (removed !== undefined) {
      const [removedKey, message] = removed;
      if (text !== undefined && text !== '') problems.push({ key: removedKey, variable, message });
    } else if (key === undefined) {
      if (variable.startsWith(VARIABLE_PREFIX) && variable !== CONFIG_VARIABLE)
        warnings.push(describeUnknownVariable(variable, variables.keys()));
    } else if (text !== undefined && text !== '') {
      given.set(key, { value: settingOf(key).format.fromText(text), origin: `environment ${variable}` });
      const ends = describeEnds(text);
      if (ends !== undefined)
        warnings.push(
          `${variable} ${ends}: docker's --env-file keeps them; remove them, unless they belong to the value`,
        );
    }
  }
  return { given, lists: new Map(), problems, warnings };
}

function describeUnknownVariable(variable: string, known: Iterable<string>): string {
  // Settings with a short variable are also found under the long name that their path would give.
  const byPath = [...SETTINGS].find(([key]) => variableOfPath(key) === variable)?.[1].env;
  // With the common prefix, short names would all look similar.
  const names = [...known].map((name) => name.slice(VARIABLE_PREFIX.length));
  const similar = findNearest(variable.slice(VARIABLE_PREFIX.length), names);
  const meant = byPath ?? (similar && VARIABLE_PREFIX + similar);
  const hint = meant === undefined ? 'it is ignored' : `did you mean ${meant}?`;
  return `environment variable ${truncate(variable)} is not a setting; ${hint}`;
}

/** A configuration file that cannot be read. The message follows its path, and quotes nothing of it. */
class FileFault extends Error {
  override readonly name = 'FileFault';
}

/**
 * Reads a configuration file, or a pipe that is being written, as in `--config <(…)`. An empty value or null counts as not set.
 * @returns the fault when it cannot be read
 */
export function readConfigFile(path: string): ConfigSource | string {
  const tree = readYamlFile(path, 'upstream');
  if (typeof tree === 'string') return tree;
  const keys = [...SETTINGS.keys(), ...LIST_KEYS, SCHEMA_KEY] as const;
  const { values, problems } = readSections(tree, { path, prefix: '', keys, refused: REMOVED_SETTINGS });
  const given = new Map<SettingKey, RawValue>();
  const lists = new Map<ListKey, RawValue>();
  for (const [key, raw] of values) {
    const origin = `file ${path}`;
    // Editors read it; here its value means nothing.
    if (key === SCHEMA_KEY) continue;
    if (key === 'routes' || key === 'credentials') lists.set(key, { value: raw, origin });
    else given.set(key, { value: settingOf(key).format.fromFile(raw), origin });
  }
  return { given, lists, problems, warnings: [] };
}

/**
 * Reads a file of sections.
 * @param example one of its keys
 * @returns the fault when it cannot be read
 */
export function readYamlFile(path: string, example: string): ReadonlyMap<unknown, unknown> | string {
  try {
    return parseYaml(readContents(path), example);
  } catch (error) {
    return error instanceof FileFault ? error.message : describeFileError(error);
  }
}

/** A wrong path may lead to a device that never ends. */
const MAX_FILE_BYTES = 1024 * 1024;
/** Longest wait for the writer of a pipe, and between two attempts to read. */
const [PIPE_TIMEOUT_MS, PIPE_POLL_MS] = [10_000, 10];

function readContents(path: string): string {
  let fd: number | undefined;
  try {
    // Otherwise a pipe without a writer blocks the process, its signals included.
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const bytes = Buffer.alloc(MAX_FILE_BYTES + 1);
    const endsAt = performance.now() + PIPE_TIMEOUT_MS;
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readWritten(fd, bytes.subarray(length), endsAt);
    if (length > MAX_FILE_BYTES) throw new FileFault(`is larger than ${String(MAX_FILE_BYTES)} bytes`);
    if (length === 0 && fstatSync(fd).isFIFO()) throw new FileFault('is a pipe without a writer');
    return bytes.toString('utf8', 0, length);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Waits while a pipe is open for writing and empty. @throws Error with a code; EAGAIN after `endsAt` */
function readWritten(fd: number, bytes: Buffer, endsAt: number): number {
  for (;;) {
    try {
      return readSync(fd, bytes);
    } catch (error) {
      if (systemErrorCode(error) !== 'EAGAIN' || performance.now() > endsAt) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PIPE_POLL_MS);
    }
  }
}

function parseYaml(contents: string, example: string): ReadonlyMap<unknown, unknown> {
  const lineCounter = new LineCounter();
  const document = parseDocument(contents, { lineCounter, prettyErrors: false, stringKeys: true, logLevel: 'error' });
  const [error] = [...document.errors, ...document.warnings];
  if (error !== undefined) {
    // The parser's messages quote the file, which may hold a secret: only its code is shown.
    const { line, col } = lineCounter.linePos(error.pos[0]);
    const code = error.code.toLowerCase().replaceAll('_', ' ');
    throw new FileFault(`line ${String(line)}, column ${String(col)}: not valid YAML or JSON (${code})`);
  }
  const read = tryRead(() => [document.toJS({ mapAsMap: true }) as unknown]);
  if (read === undefined) throw new FileFault('holds a YAML alias (*name) without its anchor, or too many of them');
  const value = read[0] ?? new Map<unknown, unknown>();
  if (value instanceof Map) return value;
  throw new FileFault(`expected sections such as "${example}:" at the top level`);
}
