BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v2.6.0.a');
CREATE TABLE studies (
	study_id INTEGER NOT NULL, 
	study_name VARCHAR(512) NOT NULL, 
	PRIMARY KEY (study_id)
);
INSERT INTO "studies" VALUES(1,'old');
CREATE TABLE study_directions (
	study_direction_id INTEGER NOT NULL, 
	direction VARCHAR(8) NOT NULL, 
	study_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	PRIMARY KEY (study_direction_id), 
	UNIQUE (study_id, objective), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_directions" VALUES(1,'MINIMIZE',1,0);
CREATE TABLE study_system_attributes (
	study_system_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_system_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE study_user_attributes (
	study_user_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_user_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE trial_heartbeats (
	trial_heartbeat_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	heartbeat DATETIME NOT NULL, 
	PRIMARY KEY (trial_heartbeat_id), 
	UNIQUE (trial_id), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_intermediate_values (
	trial_intermediate_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	intermediate_value FLOAT NOT NULL, 
	PRIMARY KEY (trial_intermediate_value_id), 
	UNIQUE (trial_id, step), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_intermediate_values" VALUES(1,1,0,1.0);
INSERT INTO "trial_intermediate_values" VALUES(2,1,1,0.5);
INSERT INTO "trial_intermediate_values" VALUES(3,1,2,3.33333333333333314829e-01);
INSERT INTO "trial_intermediate_values" VALUES(4,1,3,0.25);
INSERT INTO "trial_intermediate_values" VALUES(5,1,4,0.2);
INSERT INTO "trial_intermediate_values" VALUES(6,2,0,2.0);
INSERT INTO "trial_intermediate_values" VALUES(7,2,1,1.5);
INSERT INTO "trial_intermediate_values" VALUES(8,2,2,1.33333333333333325931e+00);
INSERT INTO "trial_intermediate_values" VALUES(9,2,3,1.25);
INSERT INTO "trial_intermediate_values" VALUES(10,2,4,1.2);
INSERT INTO "trial_intermediate_values" VALUES(11,3,0,3.0);
INSERT INTO "trial_intermediate_values" VALUES(12,3,1,2.5);
INSERT INTO "trial_intermediate_values" VALUES(13,3,2,2.33333333333333348136e+00);
INSERT INTO "trial_intermediate_values" VALUES(14,3,3,2.25);
INSERT INTO "trial_intermediate_values" VALUES(15,3,4,2.2);
INSERT INTO "trial_intermediate_values" VALUES(16,4,0,4.0);
INSERT INTO "trial_intermediate_values" VALUES(17,4,1,3.5);
INSERT INTO "trial_intermediate_values" VALUES(18,4,2,3.33333333333333348136e+00);
INSERT INTO "trial_intermediate_values" VALUES(19,5,0,5.0);
INSERT INTO "trial_intermediate_values" VALUES(20,5,1,4.5);
INSERT INTO "trial_intermediate_values" VALUES(21,5,2,4.33333333333333303727e+00);
INSERT INTO "trial_intermediate_values" VALUES(22,6,0,6.0);
INSERT INTO "trial_intermediate_values" VALUES(23,6,1,5.5);
INSERT INTO "trial_intermediate_values" VALUES(24,6,2,5.33333333333333303727e+00);
INSERT INTO "trial_intermediate_values" VALUES(25,7,0,7.0);
INSERT INTO "trial_intermediate_values" VALUES(26,7,1,6.5);
INSERT INTO "trial_intermediate_values" VALUES(27,7,2,6.33333333333333303727e+00);
INSERT INTO "trial_intermediate_values" VALUES(28,8,0,8.0);
INSERT INTO "trial_intermediate_values" VALUES(29,8,1,7.5);
INSERT INTO "trial_intermediate_values" VALUES(30,8,2,7.33333333333333303727e+00);
INSERT INTO "trial_intermediate_values" VALUES(31,9,0,9.0);
INSERT INTO "trial_intermediate_values" VALUES(32,9,1,8.5);
INSERT INTO "trial_intermediate_values" VALUES(33,9,2,8.33333333333333392545e+00);
INSERT INTO "trial_intermediate_values" VALUES(34,10,0,10.0);
INSERT INTO "trial_intermediate_values" VALUES(35,10,1,9.5);
INSERT INTO "trial_intermediate_values" VALUES(36,10,2,9.33333333333333392545e+00);
INSERT INTO "trial_intermediate_values" VALUES(37,11,0,11.0);
INSERT INTO "trial_intermediate_values" VALUES(38,11,1,10.5);
INSERT INTO "trial_intermediate_values" VALUES(39,11,2,1.0333333333333333925e+01);
INSERT INTO "trial_intermediate_values" VALUES(40,12,0,12.0);
INSERT INTO "trial_intermediate_values" VALUES(41,12,1,11.5);
INSERT INTO "trial_intermediate_values" VALUES(42,12,2,1.13333333333333339252e+01);
CREATE TABLE trial_params (
	param_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	param_name VARCHAR(512), 
	param_value FLOAT, 
	distribution_json TEXT, 
	PRIMARY KEY (param_id), 
	UNIQUE (trial_id, param_name), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_params" VALUES(1,1,'lr',1.59658340289402949675e-03,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(2,1,'layers',3.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4, "step": 1}}');
INSERT INTO "trial_params" VALUES(3,1,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(4,2,'lr',0.0373067844061019,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(5,2,'layers',4.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4, "step": 1}}');
INSERT INTO "trial_params" VALUES(6,2,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(7,3,'lr',1.60645591956300178111e-05,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(8,3,'layers',2.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4, "step": 1}}');
INSERT INTO "trial_params" VALUES(9,3,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(10,4,'lr',3.94980986766503214258e-03,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(11,4,'layers',2.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4, "step": 1}}');
INSERT INTO "trial_params" VALUES(12,4,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(13,5,'lr',1.24717538137923855841e-05,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(14,5,'layers',3.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4, "step": 1}}');
INSERT INTO "trial_params" VALUES(15,5,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(16,6,'lr',1.36175922838024709765e-04,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(17,6,'layers',3.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4, "step": 1}}');
INSERT INTO "trial_params" VALUES(18,6,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(19,7,'lr',1.50867631432598779152e-03,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(20,7,'layers',4.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4, "step": 1}}');
INSERT INTO "trial_params" VALUES(21,7,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(22,8,'lr',3.56356783428179156071e-04,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(23,8,'layers',4.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4, "step": 1}}');
INSERT INTO "trial_params" VALUES(24,8,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(25,9,'lr',4.08635820954123610282e-02,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(26,9,'layers',4.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4, "step": 1}}');
INSERT INTO "trial_params" VALUES(27,9,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(28,10,'lr',4.10812462607077714255e-03,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(29,10,'layers',3.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4, "step": 1}}');
INSERT INTO "trial_params" VALUES(30,10,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(31,11,'lr',4.22746154272537284692e-04,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(32,11,'layers',2.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4, "step": 1}}');
INSERT INTO "trial_params" VALUES(33,11,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(34,12,'lr',6.77244672378077608963e-04,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(35,12,'layers',4.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4, "step": 1}}');
INSERT INTO "trial_params" VALUES(36,12,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
CREATE TABLE trial_system_attributes (
	trial_system_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_system_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_user_attributes (
	trial_user_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_user_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_values (
	trial_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	value FLOAT NOT NULL, 
	PRIMARY KEY (trial_value_id), 
	UNIQUE (trial_id, objective), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_values" VALUES(1,1,0,0.2);
INSERT INTO "trial_values" VALUES(2,3,0,2.2);
INSERT INTO "trial_values" VALUES(3,4,0,3.33333333333333348136e+00);
INSERT INTO "trial_values" VALUES(4,5,0,4.33333333333333303727e+00);
INSERT INTO "trial_values" VALUES(5,6,0,5.33333333333333303727e+00);
INSERT INTO "trial_values" VALUES(6,7,0,6.33333333333333303727e+00);
INSERT INTO "trial_values" VALUES(7,8,0,7.33333333333333303727e+00);
INSERT INTO "trial_values" VALUES(8,9,0,8.33333333333333392545e+00);
INSERT INTO "trial_values" VALUES(9,10,0,9.33333333333333392545e+00);
INSERT INTO "trial_values" VALUES(10,11,0,1.0333333333333333925e+01);
INSERT INTO "trial_values" VALUES(11,12,0,1.13333333333333339252e+01);
CREATE TABLE trials (
	trial_id INTEGER NOT NULL, 
	number INTEGER, 
	study_id INTEGER, 
	state VARCHAR(8) NOT NULL, 
	datetime_start DATETIME, 
	datetime_complete DATETIME, 
	PRIMARY KEY (trial_id), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "trials" VALUES(1,0,1,'COMPLETE','2026-11-30 05:29:42.677815','2026-11-30 05:29:43.004036');
INSERT INTO "trials" VALUES(2,1,1,'FAIL','2026-11-30 05:29:43.100760','2026-11-30 05:29:43.323988');
INSERT INTO "trials" VALUES(3,2,1,'COMPLETE','2026-11-30 05:29:43.375607','2026-11-30 05:29:43.657325');
INSERT INTO "trials" VALUES(4,3,1,'PRUNED','2026-11-30 05:29:43.709531','2026-11-30 05:29:43.926876');
INSERT INTO "trials" VALUES(5,4,1,'PRUNED','2026-11-30 05:29:43.956018','2026-11-30 05:29:44.194213');
INSERT INTO "trials" VALUES(6,5,1,'PRUNED','2026-11-30 05:29:44.233824','2026-11-30 05:29:44.377033');
INSERT INTO "trials" VALUES(7,6,1,'PRUNED','2026-11-30 05:29:44.385341','2026-11-30 05:29:44.459237');
INSERT INTO "trials" VALUES(8,7,1,'PRUNED','2026-11-30 05:29:44.484104','2026-11-30 05:29:44.682311');
INSERT INTO "trials" VALUES(9,8,1,'PRUNED','2026-11-30 05:29:44.717697','2026-11-30 05:29:44.884768');
INSERT INTO "trials" VALUES(10,9,1,'PRUNED','2026-11-30 05:29:44.919180','2026-11-30 05:29:45.041642');
INSERT INTO "trials" VALUES(11,10,1,'PRUNED','2026-11-30 05:29:45.075038','2026-11-30 05:29:45.189043');
INSERT INTO "trials" VALUES(12,11,1,'PRUNED','2026-11-30 05:29:45.201833','2026-11-30 05:29:45.300382');
CREATE TABLE version_info (
	version_info_id INTEGER NOT NULL, 
	schema_version INTEGER, 
	library_version VARCHAR(256), 
	PRIMARY KEY (version_info_id), 
	CHECK (version_info_id=1)
);
INSERT INTO "version_info" VALUES(1,12,'2.10.1');
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
COMMIT;
