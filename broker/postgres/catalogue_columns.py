"""The columns of pg_catalog's and information_schema's tables, as far as tools ask for them.

A table's name stands at the begin of a line, its columns below it: ``name:type``, or ``name:type=value``
where all rows have that value.
"""

from __future__ import annotations

_TEXT = """
catalogue.pg_namespace
    oid:oid nspname:text nspowner:oid=10 nspacl:texts
catalogue.pg_class
    oid:oid relname:text relnamespace:oid reltype:oid=0 reloftype:oid=0 relowner:oid=10 relam:oid=2
    relfilenode:oid=0 reltablespace:oid=0 relpages:int=1 reltuples:float=-1 relallvisible:int=0
    reltoastrelid:oid=0 relhasindex:bool relisshared:bool=f relpersistence:text=p relkind:text
    relnatts:int relchecks:int=0 relhasrules:bool=f relhastriggers:bool=f relhassubclass:bool=f
    relrowsecurity:bool=f relforcerowsecurity:bool=f relispopulated:bool=t relreplident:text=d
    relispartition:bool=f relrewrite:oid=0 relfrozenxid:big=0 relminmxid:big=0 relacl:texts
    reloptions:texts relpartbound:text relhasoids:bool=f xmin:big=1
catalogue.pg_attribute
    attrelid:oid attname:text atttypid:oid attstattarget:int=-1 attlen:int attnum:int attndims:int
    attcacheoff:int=-1 atttypmod:int attbyval:bool=f attalign:text=d attstorage:text=x
    attcompression:text attnotnull:bool atthasdef:bool=f atthasmissing:bool=f attidentity:text
    attgenerated:text attisdropped:bool=f attislocal:bool=t attinhcount:int=0 attcollation:oid=0
    attacl:texts attoptions:texts attfdwoptions:texts xmin:big=1
catalogue.pg_type
    oid:oid typname:text typnamespace:oid=11 typowner:oid=10 typlen:int typbyval:bool=f
    typtype:text=b typcategory:text typispreferred:bool=f typisdefined:bool=t typdelim:text=,
    typrelid:oid=0 typsubscript:text typelem:oid=0 typarray:oid=0 typinput:text=- typoutput:text=-
    typreceive:text=- typsend:text=- typmodin:text=- typmodout:text=- typanalyze:text=-
    typalign:text=i typstorage:text=p typnotnull:bool=f typbasetype:oid=0 typtypmod:int=-1
    typndims:int=0 typcollation:oid=0 typdefault:text typdefaultbin:text typacl:texts xmin:big=1
catalogue.pg_index
    indexrelid:oid indrelid:oid indnatts:int indnkeyatts:int indisunique:bool=t
    indnullsnotdistinct:bool=f indisprimary:bool=t indisexclusion:bool=f indimmediate:bool=t
    indisclustered:bool=f indisvalid:bool=t indcheckxmin:bool=f indisready:bool=t indislive:bool=t
    indisreplident:bool=f indkey:ints indcollation:oids indclass:oids indoption:ints indexprs:text
    indpred:text
catalogue.pg_constraint
    oid:oid conname:text connamespace:oid=2200 contype:text=p condeferrable:bool=f
    condeferred:bool=f convalidated:bool=t conrelid:oid contypid:oid=0 conindid:oid
    conparentid:oid=0 confrelid:oid=0 confupdtype:text confdeltype:text confmatchtype:text
    conislocal:bool=t coninhcount:int=0 connoinherit:bool=t conkey:ints confkey:ints conpfeqop:oids
    conppeqop:oids conffeqop:oids confdelsetcols:ints conexclop:oids conbin:text consrc:text
    conenforced:bool=t conperiod:bool=f
catalogue.pg_database
    oid:oid datname:text datdba:oid=10 encoding:int=6 datlocprovider:text=c datistemplate:bool=f
    datallowconn:bool=t datconnlimit:int=-1 datfrozenxid:big=0 datminmxid:big=0
    dattablespace:oid=1663 datcollate:text=C datctype:text=C daticulocale:text datcollversion:text
    datacl:texts datlastsysoid:oid=0
catalogue.pg_roles
    oid:oid rolname:text rolsuper:bool=f rolinherit:bool=t rolcreaterole:bool=f rolcreatedb:bool=f
    rolcanlogin:bool=t rolreplication:bool=f rolconnlimit:int=-1 rolpassword:text
    rolvaliduntil:instant rolbypassrls:bool=f rolconfig:texts
catalogue.pg_settings
    name:text setting:text unit:text category:text short_desc:text extra_desc:text context:text=user
    vartype:text=string source:text=default min_val:text max_val:text enumvals:texts boot_val:text
    reset_val:text sourcefile:text sourceline:int pending_restart:bool=f
catalogue.pg_am
    oid:oid amname:text amhandler:text=- amtype:text=t
catalogue.pg_tablespace
    oid:oid spcname:text spcowner:oid=10 spcacl:texts spcoptions:texts
catalogue.pg_description
    objoid:oid classoid:oid objsubid:int description:text
catalogue.pg_attrdef
    oid:oid adrelid:oid adnum:int adbin:text adsrc:text
catalogue.pg_proc
    oid:oid proname:text pronamespace:oid proowner:oid prolang:oid prokind:text prorettype:oid
    proargtypes:oids pronargs:int proargnames:texts proargmodes:texts proallargtypes:oids
    prosrc:text proisagg:bool proretset:bool provolatile:text prosecdef:bool proacl:texts
    probin:text provariadic:oid proisstrict:bool proparallel:text procost:float prorows:float
    proconfig:texts
catalogue.pg_inherits
    inhrelid:oid inhparent:oid inhseqno:int inhdetachpending:bool
catalogue.pg_enum
    oid:oid enumtypid:oid enumsortorder:float enumlabel:text
catalogue.pg_range
    rngtypid:oid rngsubtype:oid rngmultitypid:oid rngcollation:oid rngsubopc:oid
catalogue.pg_collation
    oid:oid collname:text collnamespace:oid collowner:oid collprovider:text collisdeterministic:bool
    collencoding:int collcollate:text collctype:text colliculocale:text
catalogue.pg_extension
    oid:oid extname:text extowner:oid extnamespace:oid extrelocatable:bool extversion:text
    extconfig:oids extcondition:texts
catalogue.pg_trigger
    oid:oid tgrelid:oid tgname:text tgfoid:oid tgtype:int tgenabled:text tgisinternal:bool
    tgconstraint:oid tgparentid:oid tgdeferrable:bool tginitdeferred:bool tgnargs:int
    tgconstrrelid:oid
catalogue.pg_rewrite
    oid:oid rulename:text ev_class:oid ev_type:text ev_enabled:text is_instead:bool ev_qual:text
    ev_action:text
catalogue.pg_policy
    oid:oid polname:text polrelid:oid polcmd:text polpermissive:bool polroles:oids polqual:text
    polwithcheck:text
catalogue.pg_depend
    classid:oid objid:oid objsubid:int refclassid:oid refobjid:oid refobjsubid:int deptype:text
catalogue.pg_shdescription
    objoid:oid classoid:oid description:text
catalogue.pg_seclabel
    objoid:oid classoid:oid objsubid:int provider:text label:text
catalogue.pg_sequence
    seqrelid:oid seqtypid:oid seqstart:big seqincrement:big seqmax:big seqmin:big seqcache:big
    seqcycle:bool
catalogue.pg_sequences
    schemaname:text sequencename:text sequenceowner:text data_type:text start_value:big
    last_value:big
catalogue.pg_foreign_table
    ftrelid:oid ftserver:oid ftoptions:texts
catalogue.pg_foreign_server
    oid:oid srvname:text srvowner:oid srvfdw:oid srvtype:text srvversion:text srvacl:texts
    srvoptions:texts
catalogue.pg_foreign_data_wrapper
    oid:oid fdwname:text fdwowner:oid fdwhandler:oid fdwvalidator:oid
catalogue.pg_partitioned_table
    partrelid:oid partstrat:text partnatts:int partdefid:oid partattrs:ints partclass:oids
    partcollation:oids partexprs:text
catalogue.pg_opclass
    oid:oid opcmethod:oid opcname:text opcnamespace:oid opcowner:oid opcfamily:oid opcintype:oid
    opcdefault:bool opckeytype:oid
catalogue.pg_operator
    oid:oid oprname:text oprnamespace:oid oprleft:oid oprright:oid oprresult:oid oprcode:text
catalogue.pg_language
    oid:oid lanname:text lanowner:oid lanispl:bool lanpltrusted:bool
catalogue.pg_auth_members
    roleid:oid member:oid grantor:oid admin_option:bool
catalogue.pg_publication
    oid:oid pubname:text pubowner:oid puballtables:bool pubviaroot:bool
catalogue.pg_publication_rel
    oid:oid prpubid:oid prrelid:oid prqual:text prattrs:ints
catalogue.pg_publication_namespace
    oid:oid pnpubid:oid pnnspid:oid
catalogue.pg_publication_tables
    pubname:text schemaname:text tablename:text
catalogue.pg_statistic_ext
    oid:oid stxrelid:oid stxname:text stxnamespace:oid stxowner:oid stxkeys:ints stxkind:texts
    stxstattarget:int
catalogue.pg_event_trigger
    oid:oid evtname:text evtevent:text evtowner:oid evtfoid:oid evtenabled:text
catalogue.pg_stat_user_tables
    relid:oid schemaname:text relname:text n_live_tup:big=0 n_dead_tup:big=0 seq_scan:big=0
    idx_scan:big=0 last_analyze:instant last_vacuum:instant
catalogue.pg_stat_activity
    datid:oid datname:text pid:int usename:text application_name:text state:text query:text
    client_addr:text backend_start:instant query_start:instant wait_event:text
catalogue.pg_locks
    locktype:text database:oid relation:oid pid:int mode:text granted:bool
catalogue.pg_tables
    schemaname:text tablename:text tableowner:text=tureen tablespace:text hasindexes:bool=f
    hasrules:bool=f hastriggers:bool=f rowsecurity:bool=f
catalogue.pg_views
    schemaname:text viewname:text viewowner:text=tureen definition:text
catalogue.pg_matviews
    schemaname:text matviewname:text matviewowner:text=tureen tablespace:text hasindexes:bool=f
    ispopulated:bool=t definition:text
catalogue.pg_indexes
    schemaname:text tablename:text indexname:text tablespace:text indexdef:text
catalogue.pg_user
    usename:text usesysid:oid usecreatedb:bool=f usesuper:bool=f userepl:bool=f usebypassrls:bool=f
    passwd:text valuntil:instant useconfig:texts
information.schemata
    catalog_name:text=tureen schema_name:text schema_owner:text=tureen
    default_character_set_catalog:text default_character_set_schema:text
    default_character_set_name:text sql_path:text
information.tables
    table_catalog:text=tureen table_schema:text table_name:text table_type:text
    self_referencing_column_name:text reference_generation:text user_defined_type_catalog:text
    user_defined_type_schema:text user_defined_type_name:text is_insertable_into:text
    is_typed:text=NO commit_action:text
information.columns
    table_catalog:text=tureen table_schema:text table_name:text column_name:text
    ordinal_position:int column_default:text is_nullable:text data_type:text
    character_maximum_length:int character_octet_length:int numeric_precision:int
    numeric_precision_radix:int numeric_scale:int datetime_precision:int interval_type:text
    interval_precision:int character_set_catalog:text character_set_schema:text
    character_set_name:text collation_catalog:text collation_schema:text collation_name:text
    domain_catalog:text domain_schema:text domain_name:text udt_catalog:text=tureen
    udt_schema:text=pg_catalog udt_name:text scope_catalog:text scope_schema:text scope_name:text
    maximum_cardinality:int dtd_identifier:text is_self_referencing:text=NO is_identity:text=NO
    identity_generation:text identity_start:text identity_increment:text identity_maximum:text
    identity_minimum:text identity_cycle:text=NO is_generated:text=NEVER generation_expression:text
    is_updatable:text=NO
information.views
    table_catalog:text=tureen table_schema:text table_name:text view_definition:text
    check_option:text=NONE is_updatable:text=NO is_insertable_into:text=NO
information.table_constraints
    constraint_catalog:text=tureen constraint_schema:text=public constraint_name:text
    table_catalog:text=tureen table_schema:text table_name:text constraint_type:text
    is_deferrable:text=NO initially_deferred:text=NO enforced:text=YES
information.key_column_usage
    constraint_catalog:text=tureen constraint_schema:text=public constraint_name:text
    table_catalog:text=tureen table_schema:text table_name:text column_name:text
    ordinal_position:int position_in_unique_constraint:int
information.referential_constraints
    constraint_catalog:text constraint_schema:text constraint_name:text
    unique_constraint_catalog:text unique_constraint_schema:text unique_constraint_name:text
    match_option:text update_rule:text delete_rule:text
information.constraint_column_usage
    table_catalog:text table_schema:text table_name:text column_name:text constraint_catalog:text
    constraint_schema:text constraint_name:text
information.routines
    specific_schema:text specific_name:text routine_schema:text routine_name:text routine_type:text
    data_type:text routine_definition:text
information.parameters
    specific_schema:text specific_name:text ordinal_position:int parameter_mode:text
    parameter_name:text data_type:text
information.triggers
    trigger_schema:text trigger_name:text event_object_schema:text event_object_table:text
information.sequences
    sequence_catalog:text sequence_schema:text sequence_name:text data_type:text
information.table_privileges
    grantor:text=tureen grantee:text=PUBLIC table_catalog:text=tureen table_schema:text
    table_name:text privilege_type:text=SELECT is_grantable:text=NO with_hierarchy:text=YES
information.character_sets
    character_set_name:text=UTF8 default_collate_name:text
"""


def _tables() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in _TEXT.splitlines():
        if line.startswith(" "):
            found[name] += line.split()
        elif line:
            name = line
            found[name] = []
    return found


TABLES = _tables()
"""Every table that there is: its columns."""
