/** The configuration file that init writes: YAML with a comment for each setting, its words those of the reference. */
import { Document, isMap, stringify } from 'yaml';
import type { Scalar } from 'yaml';
import { settingOf } from '../../config/schema/schema.ts';
import type { SettingKey } from '../../config/schema/schema.ts';
import { wrapText } from '../terminal.ts';
import type { Answers } from './answers.ts';

const COMMENT_WIDTH = 96;

/** Shown with their defaults, to be found and changed. */
const COMMONLY_CHANGED: readonly SettingKey[] = ['listen.address', 'admin.address', 'log.level'];

/** @param isSecretElsewhere the secret comes from the environment */
export function renderSettings(answers: Answers, isSecretElsewhere: boolean): string {
  const document = new Document(toSections(answers));
  document.commentBefore =
    ' Written by bearer-sidecar init. What applies, and where it comes from: bearer-sidecar config --config FILE';
  for (const key of answers.keys()) addComment(document, key.split('.'), settingOf(key).doc);
  const auth = document.get('auth');
  if (isSecretElsewhere && isMap(auth)) auth.comment = ' clientSecret: in the variable SIDECAR_CLIENT_SECRET';
  document.comment = COMMONLY_CHANGED.map(formatCommentedOut).join('\n').trimEnd();
  return document.toString({ lineWidth: 0 });
}

function toSections(answers: Answers): Record<string, Record<string, unknown>> {
  const sections: Record<string, Record<string, unknown>> = {};
  for (const [key, text] of answers) {
    const [section = '', name = ''] = key.split('.');
    sections[section] = { ...sections[section], [name]: settingOf(key).format.fromText(text) };
  }
  return sections;
}

/** In front of a key. */
function addComment(document: Document, path: readonly string[], doc: string): void {
  const section = document.getIn(path.slice(0, -1));
  if (!isMap<Scalar<string>>(section)) return;
  const pair = section.items.find(({ key }) => key.value === path.at(-1));
  if (pair !== undefined)
    pair.key.commentBefore = wrapText(doc, COMMENT_WIDTH)
      .map((line) => ` ${line}`)
      .join('\n');
}

function formatCommentedOut(key: SettingKey): string {
  const { doc, default: value } = settingOf(key);
  const [section = '', name = ''] = key.split('.');
  const words = wrapText(doc, COMMENT_WIDTH).map((line) => ` ${line}\n`);
  return `${words.join('')} ${section}:\n   ${stringify({ [name]: value })}`;
}
