/**
 * The commands that are known to take a value as data, and in which of their words. What is not in these tables is
 * refused for a value that comes from outside, so a program that nobody has looked at cannot be given one by mistake.
 *
 * COMMANDS-1. A command of `PLAIN` runs nothing and loads nothing for any arguments and any input.
 * COMMANDS-2. Of a command of `TOOLS` this holds for the words that its form allows, if they do not begin with `-`. Where
 * a value could begin a word, the script is given a check that fails it (`option-check.ts`).
 * COMMANDS-3. Standard input is data only where a form says so.
 */

/** Which words of a command may hold a value. Lists are names separated by spaces. */
export interface CommandForm {
  /** Options whose value it may be; `*` for all but those of `never`. */
  readonly values?: string;
  readonly never?: string;
  /** Options without a value, behind which a word is an operand. Where they are not given, every other option is one. */
  readonly flags?: RegExp;
  /** Whether it may be an operand, or only the part of one that begins with other text. */
  readonly operands?: 'none' | 'prefixed';
  /** Whether what is read from standard input is data. */
  readonly input?: true;
  /** Every option of the command must be one of `values` or `flags`, for others change what the operands are. */
  readonly strict?: true;
  /** The operands are archives, and one with a `:` would be looked for on another machine, by a program that is run. */
  readonly archive?: true;
  /** What follows so many operands is a command that is run. */
  readonly runsAfter?: number;
}

export interface Tool {
  /** Options before the verb that take a word of their own. */
  readonly globals?: string;
  /** By verb, two words where the tool has verbs of verbs. */
  readonly verbs: Readonly<Record<string, CommandForm>>;
}

const words = (text: string): readonly string[] => text.trim().split(/\s+/);

/** Builtins and small programs without any way to run another. */
export const PLAIN: ReadonlySet<string> = new Set(
  words(`
    : true false echo cd pwd test [ [[ basename cat chgrp chmod chown cksum cmp comm cp cut date dd df diff dirname du
    egrep envsubst expand expr fgrep file fold fmt grep head hostname id join ln logger ls md5sum mkdir mktemp mv nl od
    paste realpath readlink rev rm rmdir seq sha1sum sha224sum sha256sum sha384sum sha512sum shasum b2sum sleep stat
    sync tac tail tee touch tr truncate tty uname unexpand uniq wc whoami base32 base64 xxd hexdump strings iconv
    gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd column shuf nproc
  `),
);

/** What reads a line or a file into variables: its input is data, its arguments are names. */
export const READERS: ReadonlySet<string> = new Set(['read', 'mapfile', 'readarray']);

const GIT_FLAGS =
  /^(-[afqvnuSsp]|--(annotate|force|force-with-lease|quiet|verbose|tags|all|set-upstream|no-verify|no-edit|amend|sign|delete|detach|allow-empty|no-ff|ff-only|hard|soft|mixed|short|oneline|bare|mirror|prune|unshallow|cached))$/;
const GIT: CommandForm = { flags: GIT_FLAGS };
const ANY: CommandForm = { values: '*' };
const COMPOSE: CommandForm = { values: '*', never: '-f --file --env-file --project-directory' };
const IMAGES: CommandForm = { values: '*' };
const NPM: CommandForm = {
  operands: 'none',
  values: '--tag --registry --access --otp --message -m --preid --new-version --dist-tag',
  flags: /^--(dry-run|provenance|json|no-git-tag-version|no-git-checks|ignore-scripts|allow-same-version)$/,
};
const NPM_OPERANDS: CommandForm = {
  ...(NPM.values === undefined ? {} : { values: NPM.values }),
  ...(NPM.flags === undefined ? {} : { flags: NPM.flags }),
};
const DOCKER_RUN_VALUES =
  '-e --env --name -l --label --network --net -p --publish -w --workdir -u --user --platform -h --hostname -m --memory --cpus --add-host --pull --env-file -v --volume --mount --tmpfs --shm-size --restart --stop-timeout --ulimit --gpus';
const DOCKER_FLAGS = /^(-[itdqP]+|--(rm|init|interactive|tty|detach|privileged|read-only|quiet))$/;

const DOCKER: Tool = {
  globals: '-H --host -c --context -l --log-level --config',
  verbs: {
    build: {
      values: '-t --tag --build-arg --label --target --platform --cache-from --cache-to -f --file --network --progress',
      flags: /^(-q|--(pull|no-cache|push|load|quiet|rm|force-rm|squash))$/,
      operands: 'prefixed',
    },
    'buildx build': {
      values: '-t --tag --build-arg --label --target --platform --cache-from --cache-to -f --file --network --progress',
      flags: /^(-q|--(pull|no-cache|push|load|quiet))$/,
      operands: 'prefixed',
    },
    'buildx imagetools': ANY,
    tag: IMAGES,
    push: IMAGES,
    pull: IMAGES,
    rmi: IMAGES,
    login: { values: '-u --username -p --password', flags: /^--password-stdin$/, input: true },
    logout: ANY,
    inspect: IMAGES,
    images: IMAGES,
    save: IMAGES,
    stop: ANY,
    start: ANY,
    restart: ANY,
    rm: ANY,
    kill: ANY,
    logs: ANY,
    rename: ANY,
    wait: ANY,
    ps: ANY,
    'image tag': IMAGES,
    'image push': IMAGES,
    'image pull': IMAGES,
    'image rm': IMAGES,
    'image inspect': IMAGES,
    'manifest create': IMAGES,
    'manifest push': IMAGES,
    'manifest annotate': IMAGES,
    'manifest inspect': IMAGES,
    'network create': ANY,
    'network rm': ANY,
    'volume create': ANY,
    'volume rm': ANY,
    'compose up': COMPOSE,
    'compose down': COMPOSE,
    'compose build': COMPOSE,
    'compose pull': COMPOSE,
    'compose push': COMPOSE,
    'compose logs': COMPOSE,
    run: {
      values: DOCKER_RUN_VALUES,
      never: '-v --volume --mount --env-file',
      flags: DOCKER_FLAGS,
      operands: 'prefixed',
      strict: true,
      runsAfter: 1,
    },
    exec: {
      values: '-e --env -w --workdir -u --user --env-file',
      flags: DOCKER_FLAGS,
      strict: true,
      runsAfter: 1,
    },
  },
};

const KUBECTL: CommandForm = { values: '*', never: '--kubeconfig -f --filename -k --kustomize' };
const HELM: CommandForm = {
  values: '*',
  never: '--post-renderer --post-renderer-args --kubeconfig --repository-config -f --values --keyring',
};
const GH: CommandForm = { values: '*', never: '--jq -q --template' };
const TERRAFORM: CommandForm = {
  values: '-var -target -var-file -out -replace',
  operands: 'none',
  flags: /^-(auto-approve|no-color|json|destroy)$/,
};
const WORKSPACE: CommandForm = { flags: /^-no-color$/ };
const AWS: CommandForm = { values: '*', never: '--cli-input-json --cli-input-yaml --user-data --script' };

/** Programs with verbs. A verb that is not listed may run what it is given. */
export const TOOLS: Readonly<Record<string, Tool>> = {
  git: {
    globals: '-C',
    verbs: {
      add: GIT,
      archive: { values: '--prefix -o --output', flags: GIT_FLAGS },
      branch: GIT,
      checkout: { values: '-b -B', flags: GIT_FLAGS },
      'cherry-pick': GIT,
      clone: { values: '-b --branch --depth', flags: GIT_FLAGS },
      commit: { values: '-m --message --author --date', flags: GIT_FLAGS },
      'config user.name': GIT,
      'config user.email': GIT,
      describe: GIT,
      diff: GIT,
      fetch: { values: '--depth', flags: GIT_FLAGS },
      log: { values: '-n --since --until --author --grep --format', flags: GIT_FLAGS },
      merge: { values: '-m', flags: GIT_FLAGS },
      push: { values: '-o --push-option', flags: GIT_FLAGS },
      'rev-list': GIT,
      'rev-parse': { flags: /^--(short|verify|quiet|abbrev-ref)$/ },
      reset: GIT,
      restore: { values: '-s --source', flags: GIT_FLAGS },
      rm: GIT,
      show: GIT,
      switch: { values: '-c -C', flags: GIT_FLAGS },
      tag: { values: '-m --message', flags: GIT_FLAGS },
    },
  },
  npm: {
    verbs: { publish: NPM, version: NPM_OPERANDS, deprecate: NPM_OPERANDS, 'dist-tag': NPM_OPERANDS },
  },
  pnpm: { verbs: { publish: NPM, version: NPM_OPERANDS, 'dist-tag': NPM_OPERANDS } },
  yarn: { verbs: { publish: NPM, version: NPM_OPERANDS, 'npm publish': NPM } },
  docker: DOCKER,
  podman: DOCKER,
  nerdctl: DOCKER,
  kubectl: {
    globals: '-n --namespace --context --cluster --as --as-group --user -s --server --request-timeout',
    verbs: {
      set: KUBECTL,
      get: KUBECTL,
      describe: KUBECTL,
      delete: KUBECTL,
      rollout: KUBECTL,
      scale: KUBECTL,
      label: KUBECTL,
      annotate: KUBECTL,
      wait: KUBECTL,
      logs: KUBECTL,
      'config use-context': KUBECTL,
    },
  },
  helm: {
    globals: '-n --namespace --kube-context',
    verbs: {
      upgrade: HELM,
      install: HELM,
      uninstall: HELM,
      rollback: HELM,
      template: HELM,
      status: HELM,
      lint: HELM,
      package: HELM,
      push: HELM,
      pull: HELM,
      history: HELM,
    },
  },
  gh: {
    globals: '-R --repo',
    verbs: { release: GH, pr: GH, issue: GH, workflow: GH, run: GH, label: GH, api: GH, variable: GH, secret: GH },
  },
  glab: { globals: '-R --repo', verbs: { release: GH, mr: GH, issue: GH, ci: GH, label: GH, variable: GH } },
  terraform: {
    verbs: {
      plan: TERRAFORM,
      apply: TERRAFORM,
      destroy: TERRAFORM,
      'workspace select': WORKSPACE,
      'workspace new': WORKSPACE,
    },
  },
  tofu: { verbs: { plan: TERRAFORM, apply: TERRAFORM, destroy: TERRAFORM, 'workspace select': WORKSPACE } },
  aws: {
    globals: '--region --profile --output --endpoint-url',
    verbs: {
      s3: { ...AWS, input: true },
      s3api: AWS,
      ecr: AWS,
      ecs: AWS,
      cloudformation: AWS,
      cloudfront: AWS,
      lambda: AWS,
      sns: AWS,
      sqs: AWS,
      sts: AWS,
      secretsmanager: AWS,
      route53: AWS,
      codedeploy: AWS,
    },
  },
  gcloud: {
    globals: '--project --region --zone',
    verbs: {
      run: { values: '*', never: '--flags-file --command --args --function --source' },
      app: { values: '*', never: '--flags-file' },
      functions: { values: '*', never: '--flags-file --source' },
      container: { values: '*', never: '--flags-file' },
      artifacts: { values: '*', never: '--flags-file' },
      storage: { values: '*', never: '--flags-file' },
      secrets: { values: '*', never: '--flags-file' },
    },
  },
  cargo: {
    verbs: {
      build: { values: '-p --package --features --bin', flags: /^--(release|locked|all-features)$/ },
      check: { values: '-p --package --features', flags: /^--(release|locked|all-features)$/ },
      test: { values: '-p --package --features', flags: /^--(release|locked|all-features)$/ },
      publish: { values: '-p --package --token --registry', flags: /^--(dry-run|locked|allow-dirty)$/ },
    },
  },
  mvn: { verbs: { '': { values: '-D', operands: 'none', flags: /^-[BqeXoU]$/ } } },
  systemctl: { verbs: { restart: ANY, reload: ANY, start: ANY, stop: ANY, status: ANY } },
  skopeo: { verbs: { copy: ANY, inspect: ANY } },
  crane: { verbs: { copy: ANY, digest: ANY, tag: ANY, manifest: ANY } },
  curl: { verbs: { '': { values: '*', never: '-K --config --engine', input: true } } },
  wget: {
    verbs: {
      '': {
        values: '-O --output-document -P --directory-prefix --header --user --password --post-data -U --user-agent -o',
        flags: /^(-[qcNSv]+|-nv|--(quiet|continue|no-check-certificate|no-verbose|https-only))$/,
      },
    },
  },
  tar: {
    verbs: {
      '': {
        values: '-C --directory -f --file --exclude --strip-components',
        flags: /^(-?[cxtrufzjJvhpkOa]+|--(create|extract|list|gzip|xz|zstd|bzip2|verbose|overwrite|auto-compress))$/,
        strict: true,
        archive: true,
      },
    },
  },
  zip: { verbs: { '': { flags: /^-[0-9rqjyDumX]+$/, values: '-x -i', strict: true } } },
  unzip: { verbs: { '': { flags: /^-[oqnjlpt]+$/, values: '-d', strict: true } } },
  sort: { verbs: { '': { flags: /^-[bdfginrRhVuczms]+$/, values: '-k -t -o', strict: true, input: true } } },
  find: {
    verbs: {
      '': {
        values: '-name -iname -path -ipath -type -maxdepth -mindepth -newer -mtime -mmin -size -user -group -wholename',
        flags: /^-(print|print0|delete|not|o|a|or|and|prune|empty|depth|xdev)$/,
        strict: true,
      },
    },
  },
};
