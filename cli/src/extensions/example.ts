/** What `penstock extension init` begins with: an extension that works, small enough to be read at once. */

export function exampleFiles(
  id: string,
): Readonly<Record<string, { readonly text: string; readonly isProgram?: boolean }>> {
  const name = id.slice(id.indexOf('/') + 1);
  return {
    'extension.yaml': {
      text: `# What this extension is, takes and gives; docs/extensions.md describes every key.
id: ${id}
version: 0.1.0
description: Greets somebody, in one of three languages

inputs:
  who:
    description: Whom to greet
    required: true
  language:
    description: The language of the greeting
    type: choice
    options: [en, de, fr]
    default: en
  times:
    description: How often
    type: number
    default: 1

outputs:
  greeting:
    description: The greeting as it was printed

# Inputs are in the environment as INPUT_WHO, INPUT_LANGUAGE and INPUT_TIMES. SERVICE_EXTENSION_PATH is this folder.
run: sh "$SERVICE_EXTENSION_PATH/greet.sh"
`,
    },
    'greet.sh': {
      isProgram: true,
      text: `#!/bin/sh
set -eu

case "$INPUT_LANGUAGE" in
  de) greeting="Guten Tag, $INPUT_WHO" ;;
  fr) greeting="Bonjour, $INPUT_WHO" ;;
  *) greeting="Hello, $INPUT_WHO" ;;
esac

count=0
while [ "$count" -lt "$INPUT_TIMES" ]; do
  printf '%s\\n' "$greeting"
  count=$((count + 1))
done

printf 'greeting=%s\\n' "$greeting" >> "$SERVICE_OUTPUT"
`,
    },
    'README.md': {
      text: `# ${id}

Greets somebody, in one of three languages.

\`\`\`yaml
pipeline:
  name: hello
stages:
  hello:
    uses: ${id}@^0.1
    with:
      who: world
      language: fr
  repeat:
    run: echo "It said \${{ stages.hello.outputs.greeting }}"
    after: hello
\`\`\`

Try it with \`penstock extension test ${name} who=world\`.
`,
    },
    'CHANGELOG.md': { text: '## 0.1.0\n\nThe first version.\n' },
  };
}
