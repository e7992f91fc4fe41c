/** The configuration file that init writes: YAML with the text of the reference as a comment for each setting. */
import { Document, isMap, type Scalar } from 'yaml';
import { JSON_SCHEMA_PATH, settingOf } from '../../config/schema/schema.ts';
import { locateInPackage } from '../../platform/asset.ts';
import { wrapText } from '../terminal.ts';
import type { InitSettings } from './init-settings.ts';

const COMMENT_WIDTH = 96;

/** @param isSecretInEnvironment adds a comment about SIDECAR_CLIENT_SECRET */
export function renderSettings(settings: InitSettings, isSecretInEnvironment: boolean): string {
  const document = new Document(toSections(settings));
  const schema = locateInPackage(JSON_SCHEMA_PATH)?.href;
  // Editors read it from the first line.
  document.commentBefore = `${schema === undefined ? '' : ` yaml-language-server: $schema=${schema}\n`} Written by bearer-sidecar init. Effective values and origins: bearer-sidecar config --config FILE`;
  for (const key of settings.keys()) addComment(document, key.split('.'), settingOf(key).doc);
  const auth = document.get('auth');
  if (isSecretInEnvironment && isMap(auth)) auth.comment = ' clientSecret: in the variable SIDECAR_CLIENT_SECRET';
  return document.toString({ lineWidth: 0 });
}

function toSections(settings: InitSettings): Record<string, Record<string, unknown>> {
  const sections: Record<string, Record<string, unknown>> = {};
  for (const [key, text] of settings) {
    const [section = '', name = ''] = key.split('.');
    sections[section] = { ...sections[section], [name]: settingOf(key).format.fromText(text) };
  }
  return sections;
}

function addComment(document: Document, path: readonly string[], doc: string): void {
  const section = document.getIn(path.slice(0, -1));
  if (!isMap<Scalar<string>>(section)) return;
  const pair = section.items.find(({ key }) => key.value === path.at(-1));
  if (pair !== undefined)
    pair.key.commentBefore = wrapText(doc, COMMENT_WIDTH)
      .map((line) => ` ${line}`)
      .join('\n');
}
